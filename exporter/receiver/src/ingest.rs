//! Ingests messages of both protocols: checks a message and sends it to the pipeline.
//!
//! A message is acknowledged when every required sink has it in its queue. If one has no room, the message is rejected before any of
//! it is sent, so that a retry makes no duplicates.

use std::{
    slice,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, header::ORIGIN};
use hyper::body::Incoming;
use pulsetrain_net::Guard;
use pulsetrain_otlp::{
    Signal, json,
    limits::{self, Limits},
};
use pulsetrain_pipeline::{Batch, Ingress, Reservation, ReserveError, Stage, ThrottledLog, clock};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    bodies::{Bodies, Collected},
    decompress::Coding,
    rejection::Rejection,
};

/// The most messages that are decompressed and checked concurrently, and the most bodies of the longest messages in memory. With
/// the limit of a message, this bounds the memory.
const PLACES: usize = 8;
/// The longest wait of a message for one of the [`PLACES`].
const MAX_WAIT: Duration = Duration::from_secs(2);
/// The time limit from a complete message to its response.
const DEADLINE: Duration = Duration::from_secs(10);
/// The bytes of the gRPC frame header.
const FRAMING: usize = 5;
/// Messages shorter than this are copied into separate buffers.
const SHORT: usize = 16 << 10;
/// Longer messages are converted from JSON, and pass the stage, on blocking threads.
const LONG: usize = 64 << 10;
/// Longer messages are checked on blocking threads. A message of 68 kB, the full batch of an SDK, took 1.5 times the CPU time with two
/// thread switches (benches/results/relay.txt).
const LONG_PROTOBUF: usize = 256 << 10;

/// Checks messages and sends them to the pipeline. Clones share all state.
#[derive(Clone)]
pub(super) struct IngestHandler {
    ingress: Ingress,
    limits: Arc<Limits>,
    places: Arc<Semaphore>,
    bodies: Bodies,
    stage: Option<SharedStage>,
    guard: Guard,
    log: ThrottledLog,
}

/// The stage of the receiver: messages pass it one at a time.
type SharedStage = Arc<Mutex<Box<dyn Stage>>>;

/// A message as it was received.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Protobuf(Bytes),
    Json(Bytes),
}

impl IngestHandler {
    pub(super) fn new(
        ingress: Ingress,
        limits: Limits,
        stage: Option<Box<dyn Stage>>,
        guard: Guard,
        log: ThrottledLog,
    ) -> Self {
        Self {
            ingress,
            bodies: Bodies::new(PLACES.saturating_mul(limits.bytes + FRAMING)),
            limits: Arc::new(limits),
            places: Arc::new(Semaphore::new(PLACES)),
            stage: stage.map(|stage| Arc::new(Mutex::new(stage))),
            guard,
            log,
        }
    }

    /// Returns the memory for message bodies.
    pub(super) fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reports a rejected message.
    pub(super) fn report(&self, rejection: &Rejection) {
        self.log
            .report(rejection.kind(), &format_args!("rejected a message: {rejection}"));
    }

    /// Checks the credentials of a request. Without authentication, browsers are rejected: a web site whose name resolves to this
    /// machine (DNS rebinding) could send anything. A browser names the site in `Origin`.
    pub(super) fn authorize(&self, headers: &HeaderMap) -> Result<(), Rejection> {
        self.guard
            .authorize(headers)
            .map_err(Rejection::Unauthenticated)?;
        match headers.get(ORIGIN) {
            Some(origin) if !self.guard.authenticates() => Err(Rejection::WebPage(
                String::from_utf8_lossy(origin.as_bytes()).into_owned(),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn too_large(&self) -> Rejection {
        Rejection::TooLarge {
            allowed: self.limits.bytes,
        }
    }

    /// Reads a body. This needs none of the [`PLACES`], so a slow client blocks no other.
    pub(super) async fn collect(&self, body: &mut Incoming) -> Result<Collected, Rejection> {
        match self.bodies.collect(body, self.limits.bytes + FRAMING).await {
            Err(Rejection::TooLarge { .. }) => Err(self.too_large()),
            collected => collected,
        }
    }

    /// Decompresses a body on a blocking thread.
    pub(super) async fn decompress(&self, coding: Coding, body: Bytes) -> Result<Collected, Rejection> {
        let (bodies, limit) = (self.bodies.clone(), self.limits.bytes);
        let decompressed = tokio::task::spawn_blocking(move || bodies.decompress(coding, &body, limit));
        decompressed.await.unwrap_or(Err(Rejection::ShuttingDown))
    }

    /// Waits for one of the [`PLACES`] and runs `work` within its deadline.
    pub(super) async fn admitted<T>(&self, work: impl Future<Output = T>) -> Result<T, Rejection> {
        let place = match timeout(MAX_WAIT, self.places.acquire()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Err(Rejection::ShuttingDown),
            Err(_) => return Err(Rejection::Busy),
        };
        let done = timeout(DEADLINE, work).await;
        drop(place);
        done.map_err(|_| Rejection::TooSlow)
    }

    /// Sends a message to the pipeline. It may be acknowledged after [`wait_until_held`].
    pub(super) async fn ingest(&self, signal: Signal, message: Message) -> Result<Reservation, Rejection> {
        let (bytes, items) = self.checked(signal, message).await?;
        if items == 0 {
            return Ok(Reservation::default());
        }
        let bytes = compact(bytes);
        let batch = Batch::new(signal, items, bytes);
        let mut reserved = self.ingress.try_reserve(slice::from_ref(&batch))?;
        for batch in self.staged(batch).await? {
            // The client sends the complete message again to the next receiver.
            self.ingress
                .send_reserved(batch, &mut reserved)
                .map_err(|_| Rejection::ShuttingDown)?;
        }
        Ok(reserved)
    }

    /// Passes a batch through the stage, if there is one.
    async fn staged(&self, batch: Batch) -> Result<Vec<Batch>, Rejection> {
        let Some(stage) = &self.stage else {
            return Ok(vec![batch]);
        };
        if batch.bytes().len() <= LONG {
            return Ok(pass(stage, batch));
        }
        let stage = Arc::clone(stage);
        tokio::task::spawn_blocking(move || pass(&stage, batch))
            .await
            .map_err(|_| Rejection::ShuttingDown)
    }

    /// Checks a message against the limits. Returns its protobuf bytes and the number of its items.
    async fn checked(&self, signal: Signal, message: Message) -> Result<(Bytes, u32), Rejection> {
        let long = match message {
            Message::Protobuf(_) => LONG_PROTOBUF,
            Message::Json(_) => LONG,
        };
        if message.len() <= long {
            return check(signal, message, &self.limits);
        }
        let limits = Arc::clone(&self.limits);
        tokio::task::spawn_blocking(move || check(signal, message, &limits))
            .await
            .unwrap_or(Err(Rejection::ShuttingDown))
    }
}

fn pass(stage: &SharedStage, batch: Batch) -> Vec<Batch> {
    let mut out = Vec::new();
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    stage.pass(batch, clock::now(), &mut out);
    out
}

/// Waits until every required sink holds a message. This needs none of the [`PLACES`], so that the messages of many clients are
/// synced to disk together.
pub(super) async fn wait_until_held(reserved: Reservation) -> Result<(), Rejection> {
    match timeout(DEADLINE, reserved.held()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Rejection::ShuttingDown),
        Err(_) => Err(Rejection::TooSlow),
    }
}

impl From<ReserveError> for Rejection {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::TooLarge { limit } => Self::TooLargeToQueue { limit },
            ReserveError::Closed => Self::ShuttingDown,
            _ => Self::QueueFull,
        }
    }
}

impl Message {
    fn len(&self) -> usize {
        match self {
            Self::Protobuf(bytes) | Self::Json(bytes) => bytes.len(),
        }
    }
}

/// Copies a short message out of its read buffer. Queues and recorders hold messages for long, and a message of 100 bytes would hold
/// a buffer of 8 KiB.
fn compact(bytes: Bytes) -> Bytes {
    match bytes.len() < SHORT {
        true => Bytes::copy_from_slice(&bytes),
        false => bytes,
    }
}

fn check(signal: Signal, message: Message, limits: &Limits) -> Result<(Bytes, u32), Rejection> {
    let malformed = |why: String| Rejection::Malformed(why);
    let (bytes, counts) = match message {
        Message::Protobuf(bytes) => {
            let counts =
                limits::check(signal, &bytes, limits).map_err(|error| malformed(error.to_string()))?;
            (bytes, counts)
        }
        Message::Json(text) => {
            let mut bytes = Vec::with_capacity(text.len() / 2);
            let decoded =
                json::decode(&text, limits, &mut bytes).map_err(|error| malformed(error.to_string()))?;
            match decoded.signal {
                Some(other) if other != signal => {
                    return Err(malformed(format!(
                        "it contains {other}, but was sent as {signal}"
                    )));
                }
                // JSON such as [1,1,1] is several times longer in protobuf.
                _ if bytes.len() > limits.bytes => {
                    return Err(Rejection::TooLarge {
                        allowed: limits.bytes,
                    });
                }
                _ => {
                    bytes.shrink_to_fit();
                    (bytes.into(), decoded.counts)
                }
            }
        }
    };
    let items = u32::try_from(counts.items).map_err(|_| malformed("too many items".to_owned()))?;
    Ok((bytes, items))
}
