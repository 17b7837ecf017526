//! The HTTP server: several parts of the program mount their [`Routes`] on one address.
//!
//! The server checks credentials, the host and the method of each request, limits connections, and closes those on which nothing
//! moves. Routes only build responses.
//!
//! ```text
//! accept() ──> HTTP/1.1 ──> Guard (credentials, host) ──> Routes of the path ──> ResponseBody at the speed of its reader
//! ```

mod body;
mod progress;

use std::{convert::Infallible, future::Future, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

pub use self::body::ResponseBody;
use self::{body::TrackedBody, progress::RequestProgress};
use crate::{
    Admission, Alpn, ConnectionSlots, Exposure, Guard, ListenAddress, Listener, NetError, Report,
    ServerStream, accept,
};

/// The maximum number of connections. A process has 1,024 file descriptors by default, which logs need too.
const MAX_CONNECTIONS: usize = 512;
/// The time for responses in progress when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// The maximum duration of a rejected connection.
const REFUSED: Duration = Duration::from_secs(2);

/// A response that is ready later.
pub type LaterAnswer = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// The paths of one part of the program.
pub trait Routes: Send + Sync + 'static {
    /// Returns whether these routes have a path.
    fn has(&self, path: &str) -> bool;

    /// Returns the methods of a path, as in the header `Allow`.
    fn methods(&self, _path: &str) -> &'static str {
        "GET, HEAD"
    }

    /// Returns whether a response takes so long to write that it needs the blocking pool.
    fn is_slow(&self, _path: &str) -> bool {
        false
    }

    /// Answers a request for a path that these routes have. The server removes the body of a response to HEAD.
    fn answer(&self, request: &Request<()>) -> Response<ResponseBody>;

    /// Answers a request that waits for an event, which must hold no thread; `None` (the default) for all others.
    fn answer_later(&self, _request: &Request<()>) -> Option<LaterAnswer> {
        None
    }

    /// Runs while the server runs. The server stops after the end of this future.
    fn run(&self, _stop: CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async {})
    }
}

/// Serves routes over HTTP/1.1, with or without TLS.
pub struct HttpServer {
    listener: Listener,
    idle_timeout: Duration,
    site: Site,
}

/// The routes, and the checks of their clients.
struct Site {
    guard: Guard,
    routes: Vec<Arc<dyn Routes>>,
    not_found: String,
}

impl HttpServer {
    /// Opens an address, or a Unix socket with the permissions `socket_mode`. Port 0 selects a free port, which
    /// [`local_addr`](Self::local_addr) returns. A connection without progress is closed after `idle_timeout`.
    ///
    /// # Errors
    /// A file that cannot be used, or an address in use.
    pub fn bind(
        listen: &ListenAddress,
        socket_mode: u32,
        exposure: &Exposure,
        idle_timeout: Duration,
    ) -> Result<Self, NetError> {
        let guard = Guard::open(exposure, Alpn::Http1, Arc::new(|_, _| {}))?;
        // A web page in a browser cannot reach a Unix socket.
        let is_loopback = listen.tcp().is_some_and(|address| address.ip().is_loopback());
        Ok(Self {
            listener: Listener::bind(listen, socket_mode)?,
            idle_timeout,
            site: Site {
                guard: guard.checking_host(is_loopback),
                routes: Vec::new(),
                not_found: "nothing here\n".to_owned(),
            },
        })
    }

    /// Passes failed TLS handshakes and changed files to `report`.
    #[must_use]
    pub fn with_report(mut self, report: Report) -> Self {
        self.site.guard = self.site.guard.reporting(report);
        self
    }

    /// Mounts routes. Earlier ones come first.
    #[must_use]
    pub fn with_routes(mut self, routes: impl Routes) -> Self {
        self.site.routes.push(Arc::new(routes));
        self
    }

    /// Sets the text of the response to a path that no routes have.
    #[must_use]
    pub fn with_not_found(mut self, text: String) -> Self {
        self.site.not_found = text;
        self
    }

    /// Returns the TCP address, or `None` for a Unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until `stop` is cancelled. Responses in progress then have five seconds to end.
    pub async fn run(self, stop: CancellationToken) {
        let (guard, idle_timeout) = (self.site.guard.clone(), self.idle_timeout);
        let mut running = JoinSet::new();
        for routes in &self.site.routes {
            running.spawn(routes.run(stop.clone()));
        }
        let site = Arc::new(self.site);
        let slots = ConnectionSlots::new(MAX_CONNECTIONS);
        let (stopped, shared) = (stop.clone(), slots.clone());
        let stopped = async {
            stopped.cancelled().await;
            // Their end closes the streams of updates.
            while running.join_next().await.is_some() {}
        };
        let serve = move |stream, admission| {
            let (site, slots, stop) = (Arc::clone(&site), slots.clone(), stop.clone());
            async move {
                match admission {
                    Admission::Served => connection(site, stream, idle_timeout, slots, stop).await,
                    Admission::Refused => refuse(stream).await,
                }
            }
        };
        // An error here means that the runtime ends.
        let _ = accept(self.listener, guard, shared, GRACE, stopped, serve).await;
    }
}

impl Site {
    /// Answers a request, a slow one on the blocking pool.
    async fn answer(&self, request: Request<()>) -> Response<ResponseBody> {
        let routes = match self.routes(&request) {
            Ok(routes) => Arc::clone(routes),
            Err(rejection) => return *rejection,
        };
        let is_head = request.method() == Method::HEAD;
        let mut answer = if let Some(later) = routes.answer_later(&request) {
            later.await
        } else if routes.is_slow(request.uri().path()) {
            let writing = tokio::task::spawn_blocking(move || routes.answer(&request));
            writing.await.unwrap_or_else(|_| {
                let text = "the answer could not be written; try again\n";
                plain(StatusCode::INTERNAL_SERVER_ERROR, text)
            })
        } else {
            routes.answer(&request)
        };
        if is_head {
            *answer.body_mut() = ResponseBody::complete(Bytes::new());
        }
        answer
    }

    /// Returns the routes of a request, or the response that rejects it.
    fn routes(&self, request: &Request<()>) -> Result<&Arc<dyn Routes>, Box<Response<ResponseBody>>> {
        if let Err(why) = self.guard.authorize(request.headers()) {
            let mut answer = plain(StatusCode::UNAUTHORIZED, format!("{why}\n"));
            answer.headers_mut().insert(WWW_AUTHENTICATE, why.challenge());
            return Err(answer.into());
        }
        if let Err(why) = self.guard.check_host(request) {
            return Err(plain(StatusCode::FORBIDDEN, format!("{why}\n")).into());
        }
        let path = request.uri().path();
        let Some(routes) = self.routes.iter().find(|routes| routes.has(path)) else {
            return Err(plain(StatusCode::NOT_FOUND, self.not_found.clone()).into());
        };
        let mut methods = routes.methods(path).split(", ");
        if methods.clone().any(|method| request.method() == method) {
            return Ok(routes);
        }
        let first = methods.next().unwrap_or_default();
        let mut answer = plain(StatusCode::METHOD_NOT_ALLOWED, format!("use {first}\n"));
        set(&mut answer, ALLOW, routes.methods(path));
        Err(answer.into())
    }
}

/// Serves one connection until its end, an idle timeout, or the end of the server.
async fn connection(
    site: Arc<Site>,
    stream: ServerStream,
    idle_timeout: Duration,
    slots: ConnectionSlots,
    stop: CancellationToken,
) {
    let progress = RequestProgress::new();
    let recorded = progress.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        recorded.record();
        let (site, progress) = (Arc::clone(&site), recorded.clone());
        async move {
            let answer = site.answer(request.map(drop)).await;
            Ok::<_, Infallible>(answer.map(|body| TrackedBody::new(body, progress)))
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let moves_nothing = async {
        tokio::select! {
            () = progress.stalled(idle_timeout) => {}
            () = progress.wait_until_slot_needed(&slots) => {}
        }
    };
    tokio::pin!(moves_nothing);
    tokio::select! {
        // An error here means that the client disconnected.
        _ = connection.as_mut() => return,
        () = moves_nothing.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = moves_nothing => {}
    }
}

/// Rejects the request of a connection at the limit of connections.
async fn refuse(stream: ServerStream) {
    let service = service_fn(|_: Request<Incoming>| async {
        let text = "too many connections are open; close some, or try again\n";
        let mut answer = plain(StatusCode::SERVICE_UNAVAILABLE, text);
        set(&mut answer, RETRY_AFTER, "1");
        set(&mut answer, CONNECTION, "close");
        Ok::<_, Infallible>(answer.map(|body| TrackedBody::new(body, RequestProgress::new())))
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let _ = timeout(REFUSED, connection).await;
}

/// Returns a response of plain text.
pub fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::complete(text.into()));
    *answer.status_mut() = status;
    set(&mut answer, CONTENT_TYPE, "text/plain; charset=utf-8");
    answer
}

fn set(answer: &mut Response<ResponseBody>, name: HeaderName, value: &'static str) {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
}
