//! A store of log records over HTTP and gRPC, with the answers of stores that limit or refuse their clients.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{Response, header},
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
    logs_service_server::{LogsService, LogsServiceServer},
};
use prost::Message;
use pulsetrain_pipeline::clock::{self, Instant};
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::{Code, Request, Response as Answer, Status, transport::Server};

use crate::outages::load::numbers_in;

/// The time after which a store relents.
const RELENTS_AFTER: Duration = Duration::from_secs(3);

/// The protocol of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Grpc,
}

/// The behaviour of a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Behaviour {
    /// Gives every request this answer until it relents.
    Refuses(u16, Code, &'static str),
    /// Accepts requests of up to this number of bytes.
    LimitsSize(usize),
    /// Accepts this number of bytes a second, and a quarter of it at once.
    LimitsRate(f64),
}

/// A store on loopback, which stops when it is dropped.
pub(super) struct Store {
    port: u16,
    protocol: Protocol,
    books: Shared,
    _runtime: Runtime,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Books>>);

struct Books {
    behaviour: Behaviour,
    /// The time at which the store opened; before that it is not available.
    opened: Option<Instant>,
    /// The bytes that may be sent at once, and the time of this level.
    room: (f64, Instant),
    requests: usize,
    accepted_bytes: usize,
    /// The number of times that each message arrived, by its number.
    arrived: Vec<u32>,
}

/// An answer other than success.
struct Rejection {
    status: u16,
    code: Code,
    text: String,
}

impl Store {
    /// Starts a store that is not available until it is [opened](Self::open).
    pub(super) fn start(protocol: Protocol, behaviour: Behaviour) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let listener = runtime
            .block_on(TcpListener::bind(("127.0.0.1", 0)))
            .expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let books = Shared(Arc::new(Mutex::new(Books {
            behaviour,
            opened: None,
            room: (0.0, clock::now()),
            requests: 0,
            accepted_bytes: 0,
            arrived: Vec::new(),
        })));
        match protocol {
            Protocol::Http => runtime.spawn(serve_http(listener, books.clone())),
            Protocol::Grpc => runtime.spawn(serve_grpc(listener, books.clone())),
        };
        Self {
            port,
            protocol,
            books,
            _runtime: runtime,
        }
    }

    /// Returns the endpoint.
    pub(super) fn url(&self) -> String {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Grpc => "grpc",
        };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Opens the store, which counts its requests from now on.
    pub(super) fn open(&self) {
        self.books.lock().opened = Some(clock::now());
    }

    /// Returns the number of requests since the store opened, and the bytes of the accepted ones.
    pub(super) fn requests(&self) -> (usize, usize) {
        let books = self.books.lock();
        (books.requests, books.accepted_bytes)
    }

    /// Returns the number of different messages that arrived.
    pub(super) fn arrived(&self) -> usize {
        self.books
            .lock()
            .arrived
            .iter()
            .filter(|times| **times > 0)
            .count()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Books> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

impl Books {
    /// Receives a request.
    fn receive(&mut self, body: &[u8]) -> Result<(), Rejection> {
        let now = clock::now();
        let Some(opened) = self.opened else {
            return Err(Rejection::new(503, Code::Unavailable, "not yet"));
        };
        self.requests += 1;
        let bytes = body.len();
        match self.behaviour {
            Behaviour::Refuses(status, code, text) if now - opened < RELENTS_AFTER => {
                return Err(Rejection::new(status, code, text));
            }
            Behaviour::LimitsSize(limit) if bytes > limit => {
                // Tempo over HTTP, and grpc-go.
                let text = format!("received message larger than max ({bytes} vs. {limit})");
                return Err(Rejection::new(429, Code::ResourceExhausted, text));
            }
            Behaviour::LimitsRate(per_second) => {
                let (room, at) = self.room;
                let room = (room + (now - at).as_secs_f64() * per_second).min(per_second / 4.0);
                let left = room - bytes as f64;
                self.room = (if left < 0.0 { room } else { left }, now);
                if left < 0.0 {
                    let text = "RATE_LIMITED: ingestion rate limit exceeded while adding bytes";
                    return Err(Rejection::new(429, Code::ResourceExhausted, text));
                }
            }
            Behaviour::Refuses(..) | Behaviour::LimitsSize(_) => {}
        }
        self.accepted_bytes += bytes;
        for (number, _) in numbers_in(body) {
            if self.arrived.len() <= number {
                self.arrived.resize(number + 1, 0);
            }
            self.arrived[number] += 1;
        }
        Ok(())
    }
}

impl Rejection {
    fn new(status: u16, code: Code, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { status, code, text }
    }
}

async fn serve_http(listener: TcpListener, books: Shared) {
    let router = Router::new().fallback(receive).layer(DefaultBodyLimit::disable());
    let served = axum::serve(listener, router.with_state(books)).await;
    served.expect("the store serves");
}

async fn receive(State(books): State<Shared>, body: Bytes) -> Response<String> {
    let (status, text) = match books.lock().receive(&body) {
        Ok(()) => (200, String::new()),
        Err(rejection) => (rejection.status, rejection.text),
    };
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain");
    let response = if status == 200 {
        Response::builder()
    } else {
        response
    };
    response.body(text).expect("invariant: the headers are valid")
}

async fn serve_grpc(listener: TcpListener, books: Shared) {
    let listener = tonic::transport::server::TcpIncoming::from(listener);
    let service = LogsServiceServer::new(books);
    let served = Server::builder()
        .add_service(service)
        .serve_with_incoming(listener)
        .await;
    served.expect("the store serves");
}

#[tonic::async_trait]
impl LogsService for Shared {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Answer<ExportLogsServiceResponse>, Status> {
        let body = request.get_ref().encode_to_vec();
        match self.lock().receive(&body) {
            Ok(()) => Ok(Answer::new(ExportLogsServiceResponse::default())),
            Err(rejection) => Err(Status::new(rejection.code, rejection.text)),
        }
    }
}
