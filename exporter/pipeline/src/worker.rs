//! The worker of one sink: reads batches from its queue, sends them as requests, retries by the policy and settles every
//! batch.
//!
//! [`staging`] decides what is sent next, [`requests`] holds the requests in flight, [`group`] is the content of one
//! request and settles its batches one by one. [`request_limit`] learns the size that the receiver accepts, [`refusals`] whether
//! it refuses one request or all. This file has the loop that connects them. The states of a sink are in the
//! docs of the crate.
//!
//! A panic of the sink, a hanging delivery, a batch that is too old in a full queue and the deadline of the drain are
//! each settled in the ledger, and the worker continues with the next batch.

mod group;
mod refusals;
mod request_limit;
mod requests;
mod staging;

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::Signal;
use tokio::time::{sleep_until, timeout_at};

use self::{
    group::Group,
    refusals::{RefusalCause, Refusals},
    requests::{Outcome, Requests},
    staging::{Rules, Staging},
};
use crate::{
    Delivery, DropReason, Problem, Sink, SinkTaskConfig,
    clock::{self, Instant},
    disk::DiskQueue,
    drain::Drain,
    ledger::Account,
    queue::QueueReceiver,
    retry::{Retry, Step},
    successor::Successor,
};

/// The message of a request that the deadline of the drain cancelled.
const CUT_OFF: &str = "still in delivery at the deadline";

/// The remedy of a receiver that refuses every request.
const HELD: &str = "the data is held while there is room";

/// The state of the task of one sink.
#[derive(Debug)]
pub(crate) struct Worker {
    disk: Option<DiskQueue>,
    staging: Staging,
    requests: Requests,
    account: Arc<Account>,
    retry: Retry,
    refusals: Refusals,
    drain: Drain,
    is_draining: bool,
    successor: Successor,
    /// The message of the last failure, for the batches that are dropped because of it.
    last_failure: Problem,
}

/// An event that the worker waits for.
enum Event {
    DrainBegan,
    Ended(Outcome),
    DeadlinePassed,
    /// A batch arrived, or a request can start.
    Ready,
    /// The oldest batch is too old, and the queue has no room for a newer one.
    Expired,
    /// Another sink owns the disk queue.
    Replaced,
}

impl Worker {
    pub(crate) fn new(
        sink: Box<dyn Sink>,
        queue: QueueReceiver,
        account: Arc<Account>,
        config: SinkTaskConfig,
        drain: Drain,
        successor: Successor,
    ) -> Self {
        let forks = requests::forks(&*sink, config.concurrency);
        let rules = Rules::new(&*sink, config.merge, config.concurrency, forks.is_some());
        Self {
            disk: config.disk,
            staging: Staging::new(queue, rules),
            requests: Requests::new(sink, forks.unwrap_or_default()),
            account,
            retry: Retry::new(config.retry),
            refusals: Refusals::default(),
            drain,
            is_draining: false,
            successor,
            last_failure: Problem::default(),
        }
    }

    /// Sends batches until the drain has emptied the queue, then lets the sink finish: until the deadline of the drain,
    /// but at least for `grace`, so that a sink can flush even after a late delivery.
    pub(crate) async fn run(mut self, grace: Duration) -> Result<(), Problem> {
        loop {
            self.staging.read();
            self.start_requests();
            if self.staging.is_finished() && self.requests.is_empty() {
                return self.finish(grace).await;
            }
            match self.event().await {
                Event::DrainBegan => self.begin_to_drain(),
                Event::Ended(outcome) => {
                    self.settle(outcome);
                    self.leave_to_successor();
                }
                Event::DeadlinePassed => self.cut(),
                Event::Ready => {}
                Event::Expired => {
                    if let Some(oldest) = self.staging.pop_oldest() {
                        oldest.lost(DropReason::RetriesExhausted, &self.last_failure);
                    }
                }
                Event::Replaced => self.leave_rest(),
            }
        }
    }

    /// Starts every request that can start now. Drops the batches that the policy gives up, and during the drain those whose
    /// next attempt would come too late.
    fn start_requests(&mut self) {
        let now = clock::now();
        while let Some(at) = self.next_start(now) {
            match at {
                Err(reason) => match self.staging.pop_oldest() {
                    Some(batch) => batch.lost(reason, &self.last_failure),
                    None => return,
                },
                Ok(at) if self.is_too_late(at) => return self.leave_rest(),
                Ok(at) if at > now => return,
                Ok(_) => {
                    let group = self.next_group(now);
                    let started = group.map(|group| self.requests.start(group, self.retry.is_failing()));
                    if !matches!(started, Some(Ok(()))) {
                        return;
                    }
                    self.retry.record_start(now);
                    self.staging.read();
                }
            }
        }
    }

    /// Returns the batches of the next request: one batch if the receiver refuses every request.
    fn next_group(&mut self, now: Instant) -> Option<Group> {
        let in_flight = self.requests.by_signal();
        if self.retry.is_failing() && self.refusals.is_refusing() {
            self.staging
                .next_probe(&in_flight, self.is_draining, now, &self.refusals)
        } else {
            self.staging.next_group(&in_flight, self.is_draining, now)
        }
    }

    /// Returns the time at which the next request can start, or the reason to give the batches up. Returns `None` while
    /// no batch waits, or while all batches wait for a request in flight.
    fn next_start(&self, now: Instant) -> Option<Result<Instant, DropReason>> {
        let in_flight = self.requests.by_signal();
        let at = self.staging.next_start(&in_flight, self.is_draining, now);
        if !self.requests.can_start() || self.requests.has_probe() {
            return None;
        }
        match (self.retry.next_batch(now), at?) {
            (Step::GiveUp(reason), _) => Some(Err(reason)),
            (Step::TryAt(retry), at) => Some(Ok(at.max(retry))),
        }
    }

    /// Returns whether an attempt at this time would come after the drain. A request in flight could make it earlier.
    fn is_too_late(&self, at: Instant) -> bool {
        let deadline = self.drain.deadline().filter(|_| self.is_draining);
        self.requests.is_empty() && deadline.is_some_and(|deadline| deadline <= at)
    }

    /// Waits for the next event.
    async fn event(&mut self) -> Event {
        let now = clock::now();
        let start = self.next_start(now).and_then(Result::ok);
        let (expiry, end_of_age) = (self.expiry(), self.end_of_age());
        let wants_more = self.staging.wants_more();
        let (space_requested, replaced) = (self.staging.space_requested(), self.staging.replaced());
        let expired = async {
            match expiry {
                Some(at) => {
                    sleep_until(at).await;
                    space_requested.await;
                }
                None => std::future::pending().await,
            }
        };
        let (mut begins, mut drain) = (self.drain.clone(), self.drain.clone());
        tokio::select! {
            biased;
            _ = begins.begun(), if !self.is_draining => Event::DrainBegan,
            outcome = self.requests.outcome() => Event::Ended(outcome),
            // This branch precedes the deadline, so that the end of the queue is noticed.
            () = self.staging.arrival(), if wants_more => Event::Ready,
            () = drain.passed(), if self.is_draining => Event::DeadlinePassed,
            () = replaced, if !self.staging.is_finished() => Event::Replaced,
            () = sleep_until(start.unwrap_or(now)), if start.is_some() => Event::Ready,
            () = expired => Event::Expired,
            () = sleep_until(end_of_age.unwrap_or(now)), if end_of_age.is_some() => Event::Expired,
        }
    }

    /// Returns the time from which the oldest batch may be dropped to make room, or `None` unless the sink fails and the
    /// policy allows drops. The source of a replayable batch waits instead.
    fn expiry(&self) -> Option<Instant> {
        let age = self.retry.expires_after().filter(|_| self.retry.is_failing())?;
        let oldest = self.staging.oldest()?;
        (!oldest.batch().is_replayable()).then(|| clock::later(oldest.accepted(), age))
    }

    /// Returns the time from which the oldest batch of a disk queue is dropped, whether there is room or not.
    fn end_of_age(&self) -> Option<Instant> {
        let age = self
            .disk
            .as_ref()
            .filter(|_| self.retry.is_failing())?
            .max_age()?;
        Some(clock::later(self.staging.oldest()?.accepted(), age))
    }

    /// Closes the queue, and ends the backoff, so that a failing sink is retried at once.
    fn begin_to_drain(&mut self) {
        self.is_draining = true;
        self.staging.close();
        self.staging.release();
        self.retry.drain_begins(clock::now());
        self.leave_to_successor();
    }

    /// Leaves a disk queue that another sink owns, except for the requests in flight.
    fn leave_to_successor(&mut self) {
        if self.staging.is_replaced() {
            self.leave_rest();
        }
    }

    /// Abandons the requests in flight at the deadline, and the remaining batches.
    fn cut(&mut self) {
        for group in self.requests.abandon() {
            group.cut(&self.successor, &CUT_OFF.into());
        }
        self.leave_rest();
    }

    /// Hands the remaining batches over to the sink that replaces this one, or drops them.
    fn leave_rest(&mut self) {
        while let Some(batch) = self.staging.pop_oldest() {
            self.successor.take_over(batch, &self.last_failure);
        }
        self.staging.stop();
    }

    /// Settles the batches of a request, or puts them back.
    fn settle(&mut self, outcome: Outcome) {
        let Outcome {
            group,
            number,
            is_probe,
            delivery,
        } = outcome;
        match delivery {
            Ok(Delivery::Denied(problem)) => self.denied(group, is_probe, DropReason::Refused, problem),
            Ok(Delivery::Unsupported(problem)) => {
                self.denied(group, is_probe, DropReason::UnsupportedSignal, problem);
            }
            Ok(Delivery::Retry { after, problem }) => self.failed(group, is_probe, after, problem),
            Ok(Delivery::Unreachable(problem)) => self.failed(group, is_probe, None, problem),
            Ok(Delivery::Delivered) => self.accepted(group, number, 0, &Problem::default()),
            Ok(Delivery::Partial { rejected, problem }) => {
                if rejected == 0 && !problem.is_empty() {
                    self.account.report_warning(&problem);
                }
                self.accepted(group, number, rejected, &problem);
            }
            Ok(Delivery::Refused(problem)) => self.refused(group, DropReason::Refused, &problem),
            Ok(Delivery::TooLarge(problem)) => {
                self.answered();
                if let Err(group) = self.staging.put_back_smaller(group) {
                    group.lost(DropReason::Refused, &problem);
                }
            }
            Err(panic) => self.refused(group, DropReason::SinkPanicked, &panic),
        }
    }

    /// Ends the failure of the sink.
    fn answered(&mut self) {
        self.retry.answered();
        self.last_failure = Problem::default();
    }

    /// Settles a request that the receiver accepted, except for `rejected` items.
    fn accepted(&mut self, group: Group, number: u64, rejected: u64, problem: &Problem) {
        let (signal, place) = (group.signal(), group.place());
        self.refusals.record_accepted(signal, number);
        self.staging.record_accepted(signal, group.bytes());
        group.delivered_except(rejected, problem);
        if signal == Signal::Metrics {
            while let Some(overtaken) = self.staging.pop_overtaken(signal, place) {
                overtaken.lost(DropReason::Refused, &self.last_failure);
            }
        }
        self.answered();
    }

    /// Puts back a request that the receiver refuses like all others, or drops it.
    fn denied(&mut self, mut group: Group, is_probe: bool, reason: DropReason, problem: Problem) {
        let is_of_signal = reason == DropReason::UnsupportedSignal;
        let cause = if self.retry.holds_refused() {
            let next = self.requests.next_number();
            self.refusals.record_refused(&mut group, next, is_of_signal)
        } else if self.refusals.has_accepted(group.signal()) && !is_of_signal {
            RefusalCause::Contents
        } else {
            RefusalCause::Signal
        };
        match cause {
            RefusalCause::Contents => self.refused(group, reason, &problem),
            RefusalCause::Signal => {
                self.answered();
                group.lost(reason, &problem);
            }
            RefusalCause::Service => {
                let remedy = match &problem.remedy {
                    Some(remedy) => format!("{remedy}; {HELD}"),
                    None => HELD.to_owned(),
                };
                let is_overtaken = group.signal() == Signal::Metrics
                    && self.staging.overtakes(Signal::Metrics, &self.refusals);
                match self.record_failure(is_probe, None, problem.with_remedy(remedy)) {
                    // A receiver that relents between both probes would lose the overtaken batch.
                    Step::TryAt(_) if is_overtaken => {
                        let now = clock::now();
                        self.retry.end_wait(now);
                        self.staging.put_back_apart(group, now);
                    }
                    Step::TryAt(at) => self.staging.put_back_apart(group, at),
                    Step::GiveUp(reason) => group.lost(reason, &self.last_failure),
                }
            }
        }
    }

    /// Drops a rejected batch. Several batches are sent again in two parts, so that only the batch at fault is dropped.
    fn refused(&mut self, group: Group, reason: DropReason, problem: &Problem) {
        self.answered();
        if group.is_merged() {
            self.staging.put_back_divided(group);
        } else {
            group.lost(reason, problem);
        }
    }

    /// Puts a failed request back, or gives it up.
    fn failed(&mut self, group: Group, is_probe: bool, after: Option<Duration>, problem: Problem) {
        let after = after.filter(|after| !after.is_zero());
        let is_first = is_probe || !self.retry.is_failing();
        if is_first && after.is_none() && group.is_merged() {
            self.staging.record_failure(group.signal(), group.bytes());
        }
        match self.record_failure(is_probe, after, problem) {
            Step::TryAt(at) => self.staging.put_back(group, at, after.is_some()),
            Step::GiveUp(reason) => group.lost(reason, &self.last_failure),
        }
    }

    /// Records a failed request. Requests that fail together lengthen the backoff once.
    fn record_failure(&mut self, is_probe: bool, after: Option<Duration>, problem: Problem) -> Step {
        self.account.report_retry(&problem);
        self.last_failure = problem;
        let now = clock::now();
        if is_probe || !self.retry.is_failing() {
            self.retry.failed(now, after)
        } else {
            self.retry.failed_together(now, after)
        }
    }

    /// Flushes the sink, and closes the disk queue in the meantime.
    async fn finish(&mut self, grace: Duration) -> Result<(), Problem> {
        let end = self.drain.end(grace).await;
        let sink = async {
            match timeout_at(end, self.requests.finish()).await {
                Ok(Ok(finished)) => finished,
                Ok(Err(panic)) => Err(format!("{panic}, while it flushed its data").into()),
                Err(_) => Err("did not end in time: its buffered data may be lost".into()),
            }
        };
        let disk = async {
            match &self.disk {
                Some(disk) => disk.close(&self.account, end).await,
                None => Ok(()),
            }
        };
        let (sink, disk) = tokio::join!(sink, disk);
        sink.and(disk)
    }
}
