//! The HTTP server in front of the page.
//!
//! `answer` makes the answer to a request, `body` writes a page as its reader takes it, `progress` finds readers that take
//! nothing. What a program adds to the page (`ExtraFamilies`) is asked for at each scrape.

mod answer;
mod body;
mod compress;
mod progress;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    rt::TokioIo,
    server::graceful::{GracefulShutdown, Watcher},
};
use pulsetrain_pipeline::Stop;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use self::{answer::Site, progress::Progress};
use super::{ExtraFamilies, PrometheusConfig, PrometheusStore};
use crate::SinkError;

/// The most connections at one time; further ones wait in the system's queue. A process has 1,024 file descriptors where
/// nobody raised that, and they are for logs too.
const MOST_CONNECTIONS: usize = 512;
/// What pages that are being read get when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// What a server that ran out of file descriptors waits before it takes the next connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the page over HTTP/1.1.
pub struct PrometheusServer {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
    idle_timeout: Duration,
}

impl PrometheusServer {
    /// Opens the port. Port 0 is a free one; [`local_addr`](Self::local_addr) says which.
    pub async fn bind(
        config: &PrometheusConfig,
        store: PrometheusStore,
        extra: Vec<Box<dyn ExtraFamilies>>,
    ) -> Result<Self, SinkError> {
        config.check()?;
        let listen = |source| SinkError::Listen {
            address: config.listen,
            source,
        };
        let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
        Ok(Self {
            address: listener.local_addr().map_err(listen)?,
            listener,
            idle_timeout: config.idle_timeout,
            site: Arc::new(Site {
                path: config.path.clone(),
                store,
                extra,
            }),
        })
    }

    /// Where the server listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is raised; pages that are being read then get five seconds to end.
    pub async fn run(self, stop: Stop) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.wait() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let site = Arc::clone(&self.site);
                    let connection = connection(site, stream, self.idle_timeout, graceful.watcher());
                    tokio::spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        drop(self.listener);
        // Whoever has not read his page by then is cut off with the runtime.
        let _ = timeout(GRACE, graceful.shutdown()).await;
    }
}

/// Serves one connection to its end, or until it has moved nothing for too long.
async fn connection(site: Arc<Site>, stream: TcpStream, idle_timeout: Duration, watcher: Watcher) {
    let progress = Progress::new();
    let noted = progress.clone();
    let service = service_fn(move |request| {
        noted.note();
        let answer = site.answer(&request, &noted);
        async move { Ok::<_, Infallible>(answer) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // An error here is a client that went away.
        _ = watcher.watch(connection) => {}
        () = progress.stalled(idle_timeout) => {}
    }
}
