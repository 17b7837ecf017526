//! Serves `/healthz` and `/readyz` for supervisors, `/status` with the state of the agent's parts, and `/trace` with the
//! recent telemetry; `/gpu/release` and `/gpu/resume` control the use of the GPU driver.

mod gpus;
mod status;
mod trace;

pub(crate) use self::gpus::GpuControl;
pub(crate) use self::status::{Parts, SourceLag, Status};

use std::{
    convert::Infallible,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use pulsetrain_net::{Admission, Alpn, ConnectionSlots, Guard, Listener, NetError, ServerStream, accept};
use pulsetrain_pipeline::{CancellationToken, Problem, ThrottledLog};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recorders::Recorders;
use crate::{
    config::HealthConfig,
    log::{self, Subject},
};

type Answer = Response<Full<Bytes>>;

/// The limit on concurrent connections; requests on further connections are rejected.
const MAX_CONNECTIONS: usize = 64;
/// The deadline of a request.
const REQUEST: Duration = Duration::from_secs(5);
/// The deadline of a complete exchange: a client that does not read a trace must not block other clients.
const ANSWER: Duration = Duration::from_secs(60);
/// The grace period of answers when the agent ends.
const GRACE: Duration = Duration::from_secs(1);

/// The readiness of the agent, and the failing sinks; clones share the state.
#[derive(Clone, Debug)]
pub(crate) struct Readiness(Arc<Mutex<HealthState>>);

#[derive(Debug, Default)]
struct HealthState {
    /// The reason why the agent is not ready; `None` if it is ready.
    reason: Option<Problem>,
    /// The failing sinks, each with its problem. They do not affect readiness while the queues have room.
    failing: Vec<(String, Problem)>,
    /// The problems that last until a restart and do not affect readiness.
    warnings: Vec<Problem>,
}

impl Readiness {
    /// Creates the state of an agent that is starting.
    pub(crate) fn starting() -> Self {
        Self(Arc::new(Mutex::new(HealthState {
            reason: Some("it starts".into()),
            ..HealthState::default()
        })))
    }

    /// Reports readiness.
    pub(crate) fn set(&self) {
        self.state().reason = None;
    }

    /// Reports the reason why the agent is not ready.
    pub(super) fn unset(&self, reason: impl Into<Problem>) {
        self.state().reason = Some(reason.into());
    }

    /// Returns the reason why the agent is not ready, or `None` if it is ready.
    fn reason(&self) -> Option<Problem> {
        self.state().reason.clone()
    }

    /// Replaces the failing sinks and their problems.
    pub(super) fn set_failing(&self, failing: Vec<(String, Problem)>) {
        self.state().failing = failing;
    }

    /// Adds a problem that lasts until a restart.
    pub(super) fn warn(&self, problem: Problem) {
        self.state().warnings.push(problem);
    }

    /// Returns the problems that last until a restart.
    fn warnings(&self) -> Vec<Problem> {
        self.state().warnings.clone()
    }

    fn state(&self) -> MutexGuard<'_, HealthState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data of the answers; clones share it.
#[derive(Clone)]
struct Site {
    guard: Guard,
    ready: Readiness,
    /// The restricted endpoints; `None` if other machines can connect without authentication.
    inside: Option<RestrictedEndpoints>,
}

/// The endpoints for this machine and authenticated clients only.
#[derive(Clone)]
struct RestrictedEndpoints {
    recorders: Recorders,
    status: Option<Status>,
    gpus: Option<GpuControl>,
}

/// Listens on the address. Returns the future that answers requests until it is stopped.
///
/// # Errors
/// Returns an error if the address is in use, if other machines can reach it without permission, or if a file cannot be
/// used.
pub(crate) fn serve(
    config: &HealthConfig,
    ready: Readiness,
    recorders: Recorders,
    (status, gpus): (Option<Status>, Option<GpuControl>),
    stop: CancellationToken,
) -> Result<impl Future<Output = ()> + Send + 'static, NetError> {
    let exposure = config.exposure().settings();
    let address = config.listen.value;
    exposure.check_address(address)?;
    if let Some(warning) = exposure.cleartext_warning(address) {
        log::warn(Subject::Program, format_args!("health: {warning}"));
    }
    let log = ThrottledLog::new(|event: &dyn Display| {
        log::warn(Subject::Program, format_args!("health: {event}"));
    });
    let report = Arc::new(move |kind: &str, event: &dyn Display| log.report(kind, event));
    let is_loopback = address.ip().is_loopback();
    let guard = Guard::open(&exposure, Alpn::Http1, report)?.checking_host(is_loopback);
    let listener = Listener::bind(&address.into(), 0)?;
    let site = Site {
        inside: (is_loopback || guard.authenticates()).then_some(RestrictedEndpoints {
            recorders,
            status,
            gpus,
        }),
        guard: guard.clone(),
        ready,
    };
    Ok(async move {
        let answer = move |stream, admission| connection(site.clone(), stream, admission);
        let slots = ConnectionSlots::new(MAX_CONNECTIONS);
        // An error means that the runtime ends.
        let _ = accept(listener, guard, slots, GRACE, stop.cancelled(), answer).await;
    })
}

/// Answers the one request of a connection.
async fn connection(site: Site, stream: ServerStream, admission: Admission) {
    let service = service_fn(async |request| {
        Ok::<_, Infallible>(match admission {
            Admission::Served => site.answer(&request).await,
            Admission::Refused => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections are open; close some, or try again\n",
            ),
        })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    let most = match admission {
        Admission::Served => ANSWER,
        Admission::Refused => REQUEST,
    };
    // An error means that the client disconnected or exceeded the deadline.
    let _ = tokio::time::timeout(most, connection).await;
}

impl Site {
    async fn answer(&self, request: &Request<Incoming>) -> Answer {
        if let Err(why) = self.guard.authorize(request.headers()) {
            let mut answer = plain(StatusCode::UNAUTHORIZED, format!("{why}\n"));
            let headers = answer.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, why.challenge());
            return answer;
        }
        if let Err(why) = self.guard.check_host(request) {
            return plain(StatusCode::FORBIDDEN, format!("{why}\n"));
        }
        let path = request.uri().path();
        let is_inside = is_get(request) && matches!(path, trace::PATH | status::PATH) || gpus::is_path(path);
        if !is_inside {
            return answer(request, &self.ready);
        }
        match &self.inside {
            None => plain(
                StatusCode::FORBIDDEN,
                "only this machine and authenticated clients may use this: set health.auth, or let health listen on a \
                 loopback address\n",
            ),
            Some(inside) if path == trace::PATH => {
                trace::answer(request.uri().query(), &inside.recorders).await
            }
            Some(inside) if gpus::is_path(path) => match &inside.gpus {
                Some(gpus) => gpus::answer(request, gpus).await,
                None => plain(StatusCode::NOT_FOUND, "only an agent controls the GPU driver\n"),
            },
            Some(inside) => match &inside.status {
                Some(status) => status.answer(&self.ready),
                None => plain(StatusCode::NOT_FOUND, "only an agent has a status\n"),
            },
        }
    }
}

fn is_get<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

fn answer<B>(request: &Request<B>, ready: &Readiness) -> Answer {
    if !is_get(request) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match request.uri().path() {
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/readyz" if request.uri().query() == Some(REPORT) => ready.state().report(),
        "/readyz" => ready.state().answer(),
        _ => plain(
            StatusCode::NOT_FOUND,
            "ask /healthz, /readyz, /status or /trace, or POST /gpu/release or /gpu/resume\n",
        ),
    }
}

/// The query of `/readyz` for a [`ReadinessReport`] instead of text.
const REPORT: &str = "format=json";
/// The path and the query of a [`ReadinessReport`].
pub(crate) const REPORT_PATH: &str = "/readyz?format=json";

/// The problems of an agent, as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReadinessReport {
    pub(crate) ready: bool,
    pub(crate) problems: Vec<ReportedProblem>,
}

/// A problem of an agent: why it is not ready, or why a sink fails.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReportedProblem {
    /// The part of the agent.
    pub(crate) part: String,
    pub(crate) subject: Option<String>,
    pub(crate) what: String,
    pub(crate) remedy: Option<String>,
}

impl ReportedProblem {
    fn new(part: impl Into<String>, problem: &Problem) -> Self {
        let Problem {
            subject,
            what,
            remedy,
        } = problem.clone();
        Self {
            part: part.into(),
            subject,
            what,
            remedy: remedy.map(Into::into),
        }
    }
}

impl HealthState {
    fn report(&self) -> Answer {
        let reason = self.reason.iter();
        let failing = self.failing.iter();
        let report = ReadinessReport {
            ready: self.reason.is_none(),
            problems: reason
                .map(|reason| ReportedProblem::new("not ready", reason))
                .chain(
                    failing
                        .map(|(sink, problem)| ReportedProblem::new(format!("sink {sink} fails"), problem)),
                )
                .chain(
                    self.warnings
                        .iter()
                        .map(|problem| ReportedProblem::new("warning", problem)),
                )
                .collect(),
        };
        json(&serde_json::json!(report))
    }

    fn answer(&self) -> Answer {
        let failing: String = self
            .failing
            .iter()
            .map(|(sink, problem)| format!("sink {sink} fails: {problem}\n"))
            .chain(
                self.warnings
                    .iter()
                    .map(|problem| format!("warning: {problem}\n")),
            )
            .collect();
        match &self.reason {
            None => plain(StatusCode::OK, format!("ready\n{failing}")),
            Some(reason) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not ready: {reason}\n{failing}"),
            ),
        }
    }
}

/// Returns a plain text answer.
fn plain(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

/// Returns an answer of JSON.
fn json(value: &Value) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(format!("{value}\n"))));
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, path: &str, ready: &Readiness) -> u16 {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        answer(&request, ready).status().as_u16()
    }

    #[test]
    fn liveness_succeeds_before_readiness() {
        let ready = Readiness::starting();
        assert_eq!(
            (
                status("GET", "/healthz", &ready),
                status("GET", "/readyz", &ready)
            ),
            (200, 503)
        );
        ready.set();
        assert_eq!(status("HEAD", "/readyz", &ready), 200);
        ready.unset("a sink is gone");
        assert_eq!(status("GET", "/readyz", &ready), 503);
    }

    #[test]
    fn unknown_paths_get_404() {
        let ready = Readiness::starting();
        assert_eq!(
            (
                status("GET", "/metrics", &ready),
                status("POST", "/healthz", &ready)
            ),
            (404, 405)
        );
    }
}
