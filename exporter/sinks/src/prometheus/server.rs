//! The HTTP server of the page.
//!
//! `answer` builds responses, `body` writes a page as its reader consumes it, and `progress` detects stalled
//! readers. Additional families (`ExtraFamilies`) are collected at each scrape.

mod answer;
mod body;
mod compress;
mod progress;

use std::{convert::Infallible, fmt::Display, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use pulsetrain_net::{Admission, Alpn, ConnectionSlots, Guard, Listener, ServerStream, accept};
use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{CancellationToken, ThrottledLog};
use tokio::time::timeout;

use self::{answer::Site, body::ScrapeBody, progress::Progress};
use super::{ExtraFamilies, PrometheusConfig, PrometheusStore};
use crate::SinkError;

/// The maximum number of connections. A process has 1,024 file descriptors by default, which logs need too.
const MAX_CONNECTIONS: usize = 512;
/// The time for pages in progress when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// The maximum duration of a rejected connection.
const REFUSED: Duration = Duration::from_secs(2);

/// Serves the page over HTTP/1.1, with or without TLS.
pub struct PrometheusServer {
    listener: Listener,
    address: SocketAddr,
    site: Site,
    idle_timeout: Duration,
}

impl PrometheusServer {
    /// Opens the port. Port 0 selects a free one, which [`local_addr`](Self::local_addr) returns.
    ///
    /// # Errors
    /// An invalid configuration, a file that cannot be used, or an address in use.
    pub async fn bind(
        config: &PrometheusConfig,
        store: PrometheusStore,
        extra: Vec<Box<dyn ExtraFamilies>>,
    ) -> Result<Self, SinkError> {
        config.check()?;
        let guard = Guard::open(&config.exposure, Alpn::Http1, Arc::new(|_, _| {}))?;
        let bound = Listener::bind(&config.listen.into(), 0)?;
        Ok(Self {
            address: bound.local_addr().unwrap_or(config.listen),
            listener: bound,
            idle_timeout: config.idle_timeout,
            site: Site {
                path: config.path.clone(),
                store,
                extra,
                page: None,
                guard: guard.checking_host(config.listen.ip().is_loopback()),
            },
        })
    }

    /// Passes failed TLS handshakes and changed files to `write`, each kind once a minute.
    #[must_use]
    pub fn with_log(mut self, write: impl Fn(&dyn Display) + Send + Sync + 'static) -> Self {
        let log = ThrottledLog::new(write);
        let report = Arc::new(move |kind: &str, event: &dyn Display| log.report(kind, event));
        self.site.guard = self.site.guard.reporting(report);
        self
    }

    /// Serves the live page of this history at `/`, on the same port.
    #[must_use]
    pub fn with_page(mut self, page: PageStore) -> Self {
        self.site.page = Some(page);
        self
    }

    /// Returns the listen address.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is cancelled. Pages in progress then have five seconds to end.
    pub async fn run(self, stop: CancellationToken) {
        let (guard, idle_timeout) = (self.site.guard.clone(), self.idle_timeout);
        let site = Arc::new(self.site);
        let updates = site
            .page
            .clone()
            .map(|page| tokio::spawn(page.stream(stop.clone())));
        let slots = ConnectionSlots::new(MAX_CONNECTIONS);
        let (stopped, shared) = (stop.clone(), slots.clone());
        let stopped = async {
            stopped.cancelled().await;
            if let Some(updates) = updates {
                // Its end closes the update streams.
                let _ = updates.await;
            }
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

/// Answers a request. Long responses are built on the blocking pool.
async fn answer(
    site: Arc<Site>,
    request: Request<Incoming>,
    progress: Progress,
) -> Result<Response<ScrapeBody>, Infallible> {
    if !PageStore::takes_long(request.uri().path()) {
        return Ok(site.answer(&request, &progress));
    }
    let writing = tokio::task::spawn_blocking(move || site.answer(&request, &progress));
    Ok(writing.await.unwrap_or_else(|_| answer::failed()))
}

/// Serves one connection until its end, an idle timeout, or the end of the server.
async fn connection(
    site: Arc<Site>,
    stream: ServerStream,
    idle_timeout: Duration,
    slots: ConnectionSlots,
    stop: CancellationToken,
) {
    let progress = Progress::new();
    let noted = progress.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        noted.note();
        answer(Arc::clone(&site), request, noted.clone())
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

/// Rejects the request of a connection.
async fn refuse(stream: ServerStream) {
    let service =
        service_fn(|_: Request<Incoming>| async { Ok::<_, Infallible>(answer::connection_limit_response()) });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let _ = timeout(REFUSED, connection).await;
}
