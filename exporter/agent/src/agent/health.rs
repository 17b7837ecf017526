//! Serves `/healthz` and `/readyz` for supervisors, `/status` with the state of the agent's parts, and `/trace` with the
//! recent telemetry; `/gpu/release` and `/gpu/resume` control the use of the GPU driver.

mod gpus;
mod memory;
mod status;
mod trace;

pub(crate) use self::gpus::GpuControl;
pub(crate) use self::memory::MemoryOwner;
pub(crate) use self::status::{Parts, SourceLag, Status};

use std::{
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hyper::{Request, Response, StatusCode, header};
use pulsetrain_net::{
    NetError,
    server::{HttpServer, LaterAnswer, ResponseBody, Routes, plain},
};
use pulsetrain_pipeline::{CancellationToken, Problem, ThrottledLog};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::recorders::Recorders;
use crate::{
    config::HealthConfig,
    log::{self, Subject},
};

type Answer = Response<ResponseBody>;

/// The idle timeout of a client.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

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
    /// How often the clock of the machine was set.
    clock_steps: u64,
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

    /// Counts a step of the clock of the machine.
    pub(super) fn record_clock_step(&self) {
        self.state().clock_steps += 1;
    }

    /// Returns how often the clock of the machine was set.
    fn clock_steps(&self) -> u64 {
        self.state().clock_steps
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

/// The endpoints of the agent.
struct HealthRoutes {
    ready: Readiness,
    /// The restricted endpoints; `None` if other machines can connect without authentication.
    inside: Option<RestrictedEndpoints>,
}

/// The endpoints for this machine and authenticated clients only.
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
    let is_inside = address.ip().is_loopback() || exposure.authenticates();
    let routes = HealthRoutes {
        ready,
        inside: is_inside.then_some(RestrictedEndpoints {
            recorders,
            status,
            gpus,
        }),
    };
    let server = HttpServer::bind(&address.into(), 0, &exposure, CLIENT_TIMEOUT)?;
    let server = server.with_report(report).with_routes(routes);
    Ok(server.with_not_found(NOT_FOUND.to_owned()).run(stop))
}

impl Routes for HealthRoutes {
    fn has(&self, path: &str) -> bool {
        matches!(path, LIVENESS | READINESS | trace::PATH | status::PATH) || gpus::is_path(path)
    }

    fn methods(&self, path: &str) -> &'static str {
        if gpus::is_path(path) { "POST" } else { "GET, HEAD" }
    }

    fn is_slow(&self, path: &str) -> bool {
        path == trace::PATH
    }

    fn answer_later(&self, request: &Request<()>) -> Option<LaterAnswer> {
        let gpus = self.inside.as_ref()?.gpus.clone()?;
        let request = request.clone();
        gpus::is_path(request.uri().path()).then(|| -> LaterAnswer { Box::pin(gpus::answer(request, gpus)) })
    }

    fn answer(&self, request: &Request<()>) -> Answer {
        let path = request.uri().path();
        match (path, &self.inside) {
            (LIVENESS, _) => plain(StatusCode::OK, "ok\n"),
            (READINESS, _) if request.uri().query() == Some(REPORT) => self.ready.state().report(),
            (READINESS, _) => self.ready.state().answer(),
            (_, None) => plain(
                StatusCode::FORBIDDEN,
                "only this machine and authenticated clients may use this: set health.auth, or let health listen on a \
                 loopback address\n",
            ),
            (trace::PATH, Some(inside)) => trace::answer(request.uri().query(), &inside.recorders),
            (status::PATH, Some(inside)) => match &inside.status {
                Some(status) => status.answer(&self.ready),
                None => plain(StatusCode::NOT_FOUND, "only an agent has a status\n"),
            },
            (_, Some(_)) => plain(StatusCode::NOT_FOUND, "only an agent controls the GPU driver\n"),
        }
    }
}

const LIVENESS: &str = "/healthz";
const READINESS: &str = "/readyz";
const NOT_FOUND: &str = "ask /healthz, /readyz, /status or /trace, or POST /gpu/release or /gpu/resume\n";

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

/// Returns an answer of JSON.
fn json(value: &Value) -> Answer {
    let mut response = Response::new(ResponseBody::complete(format!("{value}\n").into()));
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use pulsetrain_gpu::DriverRelease;

    use super::*;

    #[test]
    fn liveness_succeeds_before_readiness() {
        let ready = Readiness::starting();
        let routes = HealthRoutes {
            ready: ready.clone(),
            inside: None,
        };
        let status = |path: &str| {
            let request = Request::builder().uri(path).body(()).unwrap();
            routes.answer(&request).status().as_u16()
        };
        assert_eq!((status("/healthz"), status("/readyz")), (200, 503));
        ready.set();
        assert_eq!(status("/readyz"), 200);
        ready.unset("a sink is gone");
        assert_eq!((status("/readyz"), status("/status")), (503, 403));
    }

    #[tokio::test]
    async fn driver_release_is_answered_later_and_holds_no_thread() {
        let routes = HealthRoutes {
            ready: Readiness::starting(),
            inside: Some(RestrictedEndpoints {
                recorders: Recorders::default(),
                status: None,
                gpus: Some(GpuControl {
                    release: DriverRelease::default(),
                    time: Duration::from_secs(1),
                }),
            }),
        };
        let request = |path: &str| Request::builder().uri(path).body(()).unwrap();
        assert!(!routes.is_slow("/gpu/release"));
        assert!(routes.answer_later(&request("/status")).is_none());
        let released = routes.answer_later(&request("/gpu/release"));
        assert_eq!(released.expect("it is answered later").await.status(), 200);
    }
}
