//! Answers `/healthz` and `/readyz`, two questions of those who start and watch the agent, and `/trace`, which is for those who
//! want to know what it has just seen.

mod trace;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode, body::Bytes, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use pulsetrain_pipeline::Stop;
use tokio::{net::TcpListener, sync::Semaphore};

type Answer = Response<Full<Bytes>>;

/// The most questions at one time.
const MOST_CONNECTIONS: usize = 64;
/// How long a client has for its question.
const QUESTION: Duration = Duration::from_secs(5);
/// How long it has for everything: whoever does not read a trace does not keep others from asking.
const ANSWER: Duration = Duration::from_secs(60);

use super::recorders::Recorders;

/// Whether everything has been started, and which sinks fail; a clone shares the state.
#[derive(Clone, Debug)]
pub(crate) struct Ready(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Why it is not ready; `None` when it is.
    reason: Option<String>,
    /// The sinks that fail, each with its message. An agent whose queues have room is ready all the same.
    failing: Vec<(String, String)>,
}

impl Ready {
    /// Not ready, because it starts.
    pub(crate) fn starting() -> Self {
        Self(Arc::new(Mutex::new(State {
            reason: Some("it starts".to_owned()),
            ..State::default()
        })))
    }

    /// Says that everything is there.
    pub(crate) fn set(&self) {
        self.state().reason = None;
    }

    /// Says why not everything is there.
    pub(super) fn unset(&self, reason: impl Into<String>) {
        self.state().reason = Some(reason.into());
    }

    /// Replaces the sinks that fail, and their messages.
    pub(super) fn set_failing(&self, failing: Vec<(String, String)>) {
        self.state().failing = failing;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens, and gives what answers until it is stopped.
pub(crate) async fn serve(
    address: SocketAddr,
    ready: Ready,
    recorders: Recorders,
    stop: Stop,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind(address).await?;
    // What the agent has seen is nobody else's business.
    let recorders = address.ip().is_loopback().then_some(recorders);
    Ok(async move {
        tokio::select! {
            () = accept(listener, ready, recorders) => {}
            () = stop.wait() => {}
        }
    })
}

async fn accept(listener: TcpListener, ready: Ready, recorders: Option<Recorders>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors: another connection may end meanwhile.
            tokio::time::sleep(QUESTION).await;
            continue;
        };
        let (ready, recorders) = (ready.clone(), recorders.clone());
        tokio::spawn(async move {
            let service = service_fn(async |request| {
                let is_trace = is_get(&request) && request.uri().path() == trace::PATH;
                let answer = match is_trace {
                    true => trace::answer(request.uri().query(), recorders.as_ref()).await,
                    false => answer(&request, &ready),
                };
                Ok::<_, Infallible>(answer)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(QUESTION)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // An error here is a client that went away, or that took too long.
            let _ = tokio::time::timeout(ANSWER, connection).await;
            drop(place);
        });
    }
}

fn is_get<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

fn answer<B>(request: &Request<B>, ready: &Ready) -> Answer {
    if !is_get(request) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    match request.uri().path() {
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        "/readyz" => ready.state().answer(),
        _ => plain(StatusCode::NOT_FOUND, "ask /healthz, /readyz or /trace\n"),
    }
}

impl State {
    fn answer(&self) -> Answer {
        let failing: String = self
            .failing
            .iter()
            .map(|(sink, message)| format!("sink {sink} fails: {message}\n"))
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

/// An answer in words.
fn plain(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(method: &str, path: &str, ready: &Ready) -> u16 {
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        answer(&request, ready).status().as_u16()
    }

    #[test]
    fn an_agent_lives_before_it_is_ready() {
        let ready = Ready::starting();
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
    fn nothing_else_is_answered() {
        let ready = Ready::starting();
        assert_eq!(
            (
                status("GET", "/metrics", &ready),
                status("POST", "/healthz", &ready)
            ),
            (404, 405)
        );
    }
}
