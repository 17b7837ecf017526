//! The worker of one sink: takes batches from its queue in order, delivers, retries by the policy, settles the tickets.
//!
//! It never gives up on its own account: a panic of the sink, a hanging delivery, a batch that is too old in a full queue
//! and the end of the time for draining are each settled in the ledger, and the next batch follows.

use std::{sync::Arc, time::Duration};

use tokio::time::{sleep_until, timeout_at};

use crate::{
    Batch, Delivery, DropReason, RetryConfig, Sink,
    clock::{self, Instant},
    drain::Drain,
    ledger::{Account, Ticket},
    panic::caught,
    queue::{QueueReceiver, Queued},
    retry::{Retry, Step},
    successor::Successor,
};

/// Everything that one sink's task owns.
pub(crate) struct Worker {
    sink: Box<dyn Sink>,
    queue: QueueReceiver,
    account: Arc<Account>,
    retry: Retry,
    drain: Drain,
    is_draining: bool,
    successor: Successor,
    /// What the sink said the last time it failed; goes with what is dropped for it.
    trouble: String,
}

/// How the wait for an attempt ended.
enum Wait {
    /// It is time for the attempt.
    Over,
    /// The drain begins.
    DrainBegins,
    /// The drain's deadline is earlier than the attempt.
    TooLate,
    /// The batch is too old, and the queue has no room for a newer one.
    Expired,
}

/// How one attempt ended.
enum Attempt {
    /// The receiver took the batch but for `rejected` items.
    Taken { rejected: u64, message: String },
    /// The receiver will never take it.
    Refused { reason: DropReason, message: String },
    /// The receiver may take it later.
    Failed {
        after: Option<Duration>,
        message: String,
    },
    /// There was no answer, and it will not be tried again.
    Lost { reason: DropReason, message: String },
}

impl Worker {
    pub(crate) fn new(
        sink: Box<dyn Sink>,
        queue: QueueReceiver,
        account: Arc<Account>,
        retry: RetryConfig,
        drain: Drain,
        successor: Successor,
    ) -> Self {
        Self {
            sink,
            queue,
            account,
            retry: Retry::new(retry),
            drain,
            is_draining: false,
            successor,
            trouble: String::new(),
        }
    }

    /// Works until the drain has emptied the queue, then lets the sink finish: until the drain's deadline, but at least
    /// for `grace`, so that a sink can write out what it holds even when a late delivery used up the time.
    pub(crate) async fn run(mut self, grace: Duration) -> Result<(), String> {
        while let Some(queued) = self.next().await {
            let Queued {
                batch,
                ticket,
                permit,
                accepted,
            } = queued;
            let expires = self.expires(&batch, accepted);
            self.carry(&batch, ticket, expires).await;
            drop(permit);
        }
        self.finish(grace).await
    }

    /// The next batch; from the drain on, only what is in the queue already.
    async fn next(&mut self) -> Option<Queued> {
        tokio::select! {
            biased;
            _ = self.drain.begun(), if !self.is_draining => self.begin_to_drain(),
            queued = self.queue.next() => return queued,
        }
        self.queue.next().await
    }

    /// Lets nothing more in, and tries a sink that is left alone at once.
    fn begin_to_drain(&mut self) {
        self.is_draining = true;
        self.queue.close();
        self.retry.drain_begins(clock::now());
    }

    /// From when on the batch may be dropped to make room; `None` where it never is. The source of a replayable batch
    /// waits instead.
    fn expires(&self, batch: &Batch, accepted: Instant) -> Option<Instant> {
        let age = self.retry.expires_after().filter(|_| !batch.comes_again())?;
        Some(clock::later(accepted, age))
    }

    /// Brings one batch to its end, wherever that is.
    async fn carry(&mut self, batch: &Batch, ticket: Ticket, expires: Option<Instant>) {
        let mut step = self.retry.next_batch(clock::now());
        loop {
            let wait = match step {
                Step::GiveUp(reason) => return ticket.lose(reason, &self.trouble),
                Step::TryAt(at) => self.wait_until(at, expires).await,
            };
            match wait {
                Wait::Over => {}
                Wait::DrainBegins => {
                    self.begin_to_drain();
                    step = self.retry.next_batch(clock::now());
                    continue;
                }
                Wait::TooLate => return self.successor.take_over(batch.clone(), ticket, &self.trouble),
                Wait::Expired => return ticket.lose(DropReason::RetriesExhausted, &self.trouble),
            }
            match self.attempt(batch).await {
                Attempt::Taken { rejected, message } => return self.taken(ticket, rejected, &message),
                Attempt::Refused { reason, message } => return self.refused(ticket, reason, &message),
                Attempt::Failed { after, message } => {
                    // An attempt that the drain met in flight is its first.
                    if !self.is_draining && self.drain.has_begun() {
                        self.begin_to_drain();
                    }
                    step = self.failed(after, message);
                }
                Attempt::Lost {
                    reason: DropReason::DrainDeadline,
                    message,
                } => return self.successor.take_over(batch.clone(), ticket, &message),
                Attempt::Lost { reason, message } => return ticket.lose(reason, &message),
            }
        }
    }

    /// Waits for the time of the next attempt, or for what makes it needless.
    async fn wait_until(&mut self, at: Instant, expires: Option<Instant>) -> Wait {
        // Timers tick in milliseconds; a batch that may go at once must not wait for one.
        let over = async {
            if at > clock::now() {
                sleep_until(at).await;
            }
        };
        let expired = async {
            match expires {
                Some(expires) => {
                    sleep_until(expires).await;
                    self.queue.room_is_wanted().await;
                }
                None => std::future::pending().await,
            }
        };
        let (mut begins, mut drain) = (self.drain.clone(), self.drain.clone());
        tokio::select! {
            biased;
            _ = begins.begun(), if !self.is_draining => Wait::DrainBegins,
            () = drain.comes_before(at), if self.is_draining => Wait::TooLate,
            () = over => Wait::Over,
            () = expired => Wait::Expired,
        }
    }

    /// Delivers once; what is still in flight when the deadline passes is abandoned.
    async fn attempt(&mut self, batch: &Batch) -> Attempt {
        let delivery = caught(|| self.sink.deliver(batch));
        tokio::select! {
            biased;
            delivery = delivery => match delivery {
                Ok(delivery) => Attempt::from(delivery),
                Err(words) => Attempt::Lost { reason: DropReason::SinkPanicked, message: words },
            },
            () = self.drain.passed() => Attempt::Lost {
                reason: DropReason::DrainDeadline,
                message: "still being delivered when the time was over".to_owned(),
            },
        }
    }

    fn taken(&mut self, ticket: Ticket, rejected: u64, message: &str) {
        self.streak_is_over();
        if rejected == 0 && !message.is_empty() {
            self.account.note_warning(message);
        }
        ticket.deliver_except(rejected, message);
    }

    fn refused(&mut self, ticket: Ticket, reason: DropReason, message: &str) {
        self.streak_is_over();
        ticket.lose(reason, message);
    }

    fn streak_is_over(&mut self) {
        self.retry.answered();
        self.trouble.clear();
    }

    fn failed(&mut self, after: Option<Duration>, message: String) -> Step {
        self.account.note_retry(&message);
        self.trouble = message;
        self.retry.failed(clock::now(), after)
    }

    async fn finish(&mut self, grace: Duration) -> Result<(), String> {
        let at_least = clock::later(clock::now(), grace);
        let until = self.drain.begun().await.max(at_least);
        match timeout_at(until, caught(|| self.sink.finish())).await {
            Ok(Ok(finished)) => finished,
            Ok(Err(words)) => Err(format!("{words}, while it wrote out what it held")),
            Err(_) => Err("did not end in time: what it still held may be lost".to_owned()),
        }
    }
}

impl From<Delivery> for Attempt {
    fn from(delivery: Delivery) -> Self {
        match delivery {
            Delivery::Delivered => Self::Taken {
                rejected: 0,
                message: String::new(),
            },
            Delivery::Partial { rejected, message } => Self::Taken { rejected, message },
            Delivery::Refused { message } => Self::Refused {
                reason: DropReason::Refused,
                message,
            },
            Delivery::Unsupported { message } => Self::Refused {
                reason: DropReason::UnsupportedSignal,
                message,
            },
            Delivery::Retry { after, message } => Self::Failed { after, message },
        }
    }
}
