//! A receiver on a free port of 127.0.0.1: HTTP/1 and HTTP/2, with or without TLS. It records each request,
//! answers all of them alike, and stops on drop.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSink};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

/// The recorded requests.
#[derive(Default)]
struct Log {
    connections: usize,
    requests: Vec<Received>,
}

#[derive(Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Receiver {
    pub(crate) async fn start(answer: impl Fn() -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(None, move |_| answer()).await
    }

    /// Returns a receiver whose response depends on the request.
    pub(crate) async fn start_judging(answer: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(None, answer).await
    }

    pub(crate) async fn start_tls(
        tls: rustls::ServerConfig,
        answer: impl Fn() -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(TlsAcceptor::from(Arc::new(tls))), move |_| answer()).await
    }

    async fn listen(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(&Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Log::default()));
        let task = tokio::spawn(accept(listener, tls, Arc::clone(&log), Arc::new(answer)));
        Self { address, log, task }
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.log.lock().unwrap().requests.clone()
    }

    pub(crate) fn only_request(&self) -> Received {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1);
        requests.remove(0)
    }

    pub(crate) fn connections(&self) -> usize {
        self.log.lock().unwrap().connections
    }

    /// Delivers a batch by a new sink whose target is this receiver, with the given variables.
    pub(crate) async fn deliver(&self, scheme: &str, variables: &[(&str, &str)]) -> Delivery {
        let mut sink = self.sink(scheme, variables);
        sink.deliver(&batch(Signal::Metrics)).await
    }

    pub(crate) fn sink(&self, scheme: &str, variables: &[(&str, &str)]) -> OtlpSink {
        sink(&format!("{scheme}://{}", self.address), variables)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns a sink for a target. `variables` have no prefix.
pub(crate) fn sink(target: &str, variables: &[(&str, &str)]) -> OtlpSink {
    OtlpSink::new(&OtlpConfig::from_url(target, lookup(variables)).unwrap()).unwrap()
}

pub(crate) fn lookup(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let known = variables
            .iter()
            .find(|(known, _)| name.strip_prefix("OTEL_EXPORTER_OTLP_") == Some(known));
        known.map(|(_, value)| (*value).to_owned())
    }
}

/// Returns ten items of one signal: one resource (or repeatedly the same) with an empty scope.
pub(crate) fn batch(signal: Signal) -> Batch {
    Batch::new(signal, 10, b"\x0a\x02\x12\x00".repeat(50))
}

type Answers = Arc<dyn Fn(&Received) -> Answer + Send + Sync>;

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, log: Arc<Mutex<Log>>, answer: Answers) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        log.lock().unwrap().connections += 1;
        tokio::spawn(secure(stream, tls.clone(), Arc::clone(&log), Arc::clone(&answer)));
    }
}

async fn secure(stream: TcpStream, tls: Option<TlsAcceptor>, log: Arc<Mutex<Log>>, answer: Answers) {
    match tls {
        None => serve(stream, log, answer).await,
        // Some tests have a client that rejects our certificate.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                serve(stream, log, answer).await;
            }
        }
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + 'static, log: Arc<Mutex<Log>>, answer: Answers) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
        async move {
            let received = receive(request).await;
            let answer = answer(&received);
            log.lock().unwrap().requests.push(received);
            Ok::<_, Infallible>(answer)
        }
    });
    // Some tests have a client that disconnects during a response.
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn receive(request: Request<Incoming>) -> Received {
    let (head, body) = request.into_parts();
    Received {
        method: head.method.to_string(),
        path: head
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    }
}
