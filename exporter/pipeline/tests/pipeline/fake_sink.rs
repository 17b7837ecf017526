//! A sink that follows a script and keeps its own counts of the received batches, to check the ledger.

use std::{
    future::pending,
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, Ingress, Problem, Sink,
    clock::{self, Instant},
};
use tokio::time::sleep;

/// One attempt: the sink waits, then answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) takes: Duration,
    pub(crate) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Take,
    /// Accepts all items except for this number, which may exceed the number of sent items.
    Reject(u64),
    Refuse,
    DoNotSupport,
    Retry(Option<Duration>),
    Panic,
    Hang,
}

/// The outcome of one attempt, with its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub(crate) id: u32,
    pub(crate) began: Instant,
    pub(crate) answered: Option<(Instant, Answer)>,
}

/// The sink's own counts, in items.
#[derive(Debug, Default)]
pub(crate) struct RecordedCalls {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) received: u64,
    pub(crate) rejected: u64,
    pub(crate) refused: u64,
    pub(crate) unsupported: u64,
    pub(crate) panicked: u64,
    pub(crate) finished: usize,
}

/// The test's access to the counts of a sink.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witness(Arc<Mutex<RecordedCalls>>);

/// Follows its script and stays at the last move, or starts again.
pub(crate) struct FakeSink {
    name: String,
    script: Vec<Move>,
    again: bool,
    moves: usize,
    witness: Witness,
}

/// Returns a batch with an id in its first four bytes.
pub(crate) fn batch(id: u32, items: u32, bytes: usize) -> Batch {
    let mut payload = id.to_be_bytes().to_vec();
    payload.resize(bytes.max(4), 0);
    Batch::new(Signal::Metrics, items, payload)
}

pub(crate) fn id_of(batch: &Batch) -> u32 {
    let number = batch
        .bytes()
        .first_chunk()
        .expect("every test batch begins with its number");
    u32::from_be_bytes(*number)
}

/// Sends a batch to an open pipeline.
#[track_caller]
pub(crate) fn send_or_drop(ingress: &Ingress, batch: Batch) {
    ingress.try_send_or_drop(batch).expect("the pipeline is open");
}

impl Answer {
    pub(crate) fn at_once(self) -> Move {
        self.after(Duration::ZERO)
    }

    pub(crate) fn after(self, takes: Duration) -> Move {
        Move { takes, answer: self }
    }

    fn say(self) -> Delivery {
        match self {
            Self::Take => Delivery::Delivered,
            Self::Reject(rejected) => Delivery::Partial {
                rejected,
                problem: "some are too old".into(),
            },
            Self::Refuse => Delivery::Refused("no such tenant".into()),
            Self::DoNotSupport => Delivery::Unsupported("no such service".into()),
            Self::Retry(after) => Delivery::Retry {
                after,
                problem: "busy".into(),
            },
            // Not `panic!`: the hook would print every one of thousands.
            Self::Panic => resume_unwind(Box::new("as scripted")),
            Self::Hang => unreachable!("a hanging delivery has no answer"),
        }
    }
}

impl Witness {
    pub(crate) fn books(&self) -> MutexGuard<'_, RecordedCalls> {
        self.0.lock().expect("no test panics while it looks at the books")
    }

    /// Returns the numbers of the batches that arrived, in order.
    pub(crate) fn received_ids(&self) -> Vec<u32> {
        let took =
            |attempt: &&Attempt| matches!(attempt.answered, Some((_, Answer::Take | Answer::Reject(_))));
        self.books()
            .attempts
            .iter()
            .filter(took)
            .map(|attempt| attempt.id)
            .collect()
    }
}

impl FakeSink {
    /// Creates a sink that follows the script and stays at its last move.
    pub(crate) fn scripted(name: &str, script: impl Into<Vec<Move>>) -> (Box<dyn Sink>, Witness) {
        Self::build(name, script.into(), false)
    }

    /// Creates a sink that repeats the script.
    pub(crate) fn again_and_again(name: &str, script: impl Into<Vec<Move>>) -> (Box<dyn Sink>, Witness) {
        Self::build(name, script.into(), true)
    }

    fn build(name: &str, script: Vec<Move>, again: bool) -> (Box<dyn Sink>, Witness) {
        assert!(!script.is_empty(), "a script has at least one move");
        let witness = Witness::default();
        (
            Box::new(Self {
                name: name.to_owned(),
                script,
                again,
                moves: 0,
                witness: witness.clone(),
            }),
            witness,
        )
    }

    fn next_move(&mut self) -> Move {
        let last = self.script.len() - 1;
        let at = if self.again {
            self.moves % self.script.len()
        } else {
            self.moves.min(last)
        };
        self.moves += 1;
        self.script[at]
    }
}

impl Sink for FakeSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let Move { takes, answer } = self.next_move();
        let attempt = Attempt {
            id: id_of(batch),
            began: clock::now(),
            answered: None,
        };
        self.witness.books().attempts.push(attempt);
        Box::pin(async move {
            if !takes.is_zero() {
                sleep(takes).await;
            }
            if answer == Answer::Hang {
                pending::<()>().await;
            }
            self.witness.books().record(answer, u64::from(batch.items()));
            answer.say()
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        self.witness.books().finished += 1;
        Box::pin(async { Ok(()) })
    }
}

impl RecordedCalls {
    fn record(&mut self, answer: Answer, items: u64) {
        let attempt = self.attempts.last_mut().expect("an attempt was begun");
        attempt.answered = Some((clock::now(), answer));
        match answer {
            Answer::Take => self.received += items,
            Answer::Reject(rejected) => {
                self.received += items.saturating_sub(rejected);
                self.rejected += rejected.min(items);
            }
            Answer::Refuse => self.refused += items,
            Answer::DoNotSupport => self.unsupported += items,
            Answer::Panic => self.panicked += items,
            Answer::Retry(_) | Answer::Hang => {}
        }
    }
}
