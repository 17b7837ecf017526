//! What becomes of a message, whichever way it came: checked, and put through the door.
//!
//! A message is answered when every required sink has it in its queue. While one has no room the message is refused before
//! anything of it goes through, so that the client can send it again without making doubles.

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
use pulsetrain_pipeline::{Batch, Door, Reservation, ReserveError, Stage, ThrottledLog, clock};
use tokio::{sync::Semaphore, time::timeout};

use super::{
    bodies::{Bodies, Collected},
    refusal::Refusal,
};

/// The most messages that are inflated and checked at one time, and the bodies of the longest messages that are in memory:
/// with their limit, this bounds the memory.
const PLACES: usize = 8;
/// How long a message waits for a place.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a complete message may take to its answer.
const DEADLINE: Duration = Duration::from_secs(10);
/// What a protocol adds to a message: the head of a gRPC frame.
const FRAMING: usize = 5;
/// Shorter messages are copied into memory of their own.
const SHORT: usize = 16 << 10;
/// Longer messages are looked at away from the threads of the network.
const LONG: usize = 64 << 10;

/// The way in; a clone leads to the same door.
#[derive(Clone)]
pub(super) struct Inlet {
    door: Door,
    limits: Arc<Limits>,
    places: Arc<Semaphore>,
    bodies: Bodies,
    stage: Option<SharedStage>,
    guard: Guard,
    log: ThrottledLog,
}

/// The stage of the receiver: messages pass it one at a time.
type SharedStage = Arc<Mutex<Box<dyn Stage>>>;

/// A message as it came.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Protobuf(Bytes),
    Json(Bytes),
}

impl Inlet {
    pub(super) fn new(
        door: Door,
        limits: Limits,
        stage: Option<Box<dyn Stage>>,
        guard: Guard,
        log: ThrottledLog,
    ) -> Self {
        Self {
            door,
            bodies: Bodies::new(PLACES.saturating_mul(limits.bytes + FRAMING)),
            limits: Arc::new(limits),
            places: Arc::new(Semaphore::new(PLACES)),
            stage: stage.map(|stage| Arc::new(Mutex::new(stage))),
            guard,
            log,
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reports that a message was refused.
    pub(super) fn report(&self, refusal: &Refusal) {
        self.log
            .report(refusal.kind(), &format_args!("refused a message: {refusal}"));
    }

    /// Checks the credentials of a request. Without any, browsers are refused: a web site that lets its name point to this
    /// machine (DNS rebinding) could send anything, and a browser names the site in `Origin`.
    pub(super) fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        self.guard.authorize(headers).map_err(Refusal::Unauthenticated)?;
        match headers.get(ORIGIN) {
            Some(origin) if !self.guard.authenticates() => Err(Refusal::WebPage(
                String::from_utf8_lossy(origin.as_bytes()).into_owned(),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn too_large(&self) -> Refusal {
        Refusal::TooLarge {
            allowed: self.limits.bytes,
        }
    }

    /// Reads a body to its end, which needs no place: a slow client holds up nobody else.
    pub(super) async fn collect(&self, body: &mut Incoming) -> Result<Collected, Refusal> {
        match self.bodies.collect(body, self.limits.bytes + FRAMING).await {
            Err(Refusal::TooLarge { .. }) => Err(self.too_large()),
            collected => collected,
        }
    }

    /// Does the checking and answering of a complete message when there is a place for it, within its deadline.
    pub(super) async fn admitted<T>(&self, work: impl Future<Output = T>) -> Result<T, Refusal> {
        let place = match timeout(PATIENCE, self.places.acquire()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) => return Err(Refusal::Ending),
            Err(_) => return Err(Refusal::NoPlace),
        };
        let done = timeout(DEADLINE, work).await;
        drop(place);
        done.map_err(|_| Refusal::TooSlow)
    }

    /// Puts a message through the door. It is acknowledged when every required sink [holds](held) it.
    pub(super) async fn take(&self, signal: Signal, message: Message) -> Result<Reservation, Refusal> {
        let (bytes, items) = self.checked(signal, message).await?;
        if items == 0 {
            return Ok(Reservation::default());
        }
        let bytes = compact(bytes);
        let batch = Batch::new(signal, items, bytes);
        let mut reserved = self.door.try_reserve(slice::from_ref(&batch))?;
        for batch in self.staged(batch).await? {
            // Whoever is told that it ends sends all of it again, to whoever comes after us.
            self.door
                .send_reserved(batch, &mut reserved)
                .map_err(|_| Refusal::Ending)?;
        }
        Ok(reserved)
    }

    /// Passes a batch through the stage, if there is one.
    async fn staged(&self, batch: Batch) -> Result<Vec<Batch>, Refusal> {
        let Some(stage) = &self.stage else {
            return Ok(vec![batch]);
        };
        if batch.bytes().len() <= LONG {
            return Ok(pass(stage, batch));
        }
        let stage = Arc::clone(stage);
        tokio::task::spawn_blocking(move || pass(&stage, batch))
            .await
            .map_err(|_| Refusal::Ending)
    }

    /// The protobuf bytes of a message that is within the limits, and its items.
    async fn checked(&self, signal: Signal, message: Message) -> Result<(Bytes, u32), Refusal> {
        if message.len() <= LONG {
            return check(signal, message, &self.limits);
        }
        let limits = Arc::clone(&self.limits);
        tokio::task::spawn_blocking(move || check(signal, message, &limits))
            .await
            .unwrap_or(Err(Refusal::Ending))
    }
}

fn pass(stage: &SharedStage, batch: Batch) -> Vec<Batch> {
    let mut out = Vec::new();
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    stage.pass(batch, clock::now(), &mut out);
    out
}

/// Waits until every required sink holds what was put through the door: it needs no place for that, so that the messages of
/// many clients are synced to disk together.
pub(super) async fn held(reserved: Reservation) -> Result<(), Refusal> {
    match timeout(DEADLINE, reserved.held()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Refusal::Ending),
        Err(_) => Err(Refusal::TooSlow),
    }
}

impl From<ReserveError> for Refusal {
    fn from(error: ReserveError) -> Self {
        match error {
            ReserveError::TooLarge { limit } => Self::TooLargeToQueue { limit },
            ReserveError::Closed => Self::Ending,
            _ => Self::NoRoom,
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

/// Copies a short message out of the buffer that it was read into: queues and recorders keep messages for long, and a
/// message of 100 bytes would keep a buffer of 8 KiB with it.
fn compact(bytes: Bytes) -> Bytes {
    match bytes.len() < SHORT {
        true => Bytes::copy_from_slice(&bytes),
        false => bytes,
    }
}

fn check(signal: Signal, message: Message, limits: &Limits) -> Result<(Bytes, u32), Refusal> {
    let malformed = |why: String| Refusal::Malformed(why);
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
                    return Err(malformed(format!("it holds {other}, and came as {signal}")));
                }
                // Text such as [1,1,1] is several times as long in protobuf.
                _ if bytes.len() > limits.bytes => {
                    return Err(Refusal::TooLarge {
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
