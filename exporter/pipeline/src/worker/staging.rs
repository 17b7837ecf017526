//! Decides what to send next: batches that were read from the queue, in one FIFO for each signal, and the rules by which
//! they become requests.
//!
//! Without a fork of its sink a task is ordered: one request at a time, one batch in each, in the order of the queue.
//! With forks each signal has one request in flight, which merges the queued batches. Another one starts only when it is
//! full, so that merging comes before parallel requests. Metrics have at most one request in flight.

use std::collections::VecDeque;

use pulsetrain_otlp::{Signal, split};

use super::{
    group::{Group, StagedBatch, is_complete},
    refusals::Refusals,
    request_limit::RequestLimit,
};
use crate::{
    MergeConfig, Sink,
    clock::{self, Instant},
    queue::{QueueReceiver, Queued},
};

/// The rules by which the batches of one sink task become requests.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Whether batches are sent one at a time, in the order of the queue.
    pub(super) is_ordered: bool,
    pub(super) merge: MergeConfig,
    /// The maximum size of a request by signal.
    pub(super) max_request_bytes: [usize; Signal::ALL.len()],
    /// The limit in bytes on the batches that are read from the queue before they can be sent.
    pub(super) read_ahead_bytes: usize,
}

/// The requests in flight by signal.
pub(super) type InFlight = [usize; Signal::ALL.len()];

/// The batches to send next.
#[derive(Debug)]
pub(super) struct Staging {
    queue: QueueReceiver,
    /// Whether the queue is closed and empty.
    is_over: bool,
    rules: Rules,
    limits: [RequestLimit; Signal::ALL.len()],
    fifos: [Fifo; Signal::ALL.len()],
    next_place: u64,
    next_part: u64,
}

#[derive(Debug, Default)]
struct Fifo {
    batches: VecDeque<StagedBatch>,
    bytes: usize,
    hold: Option<Backoff>,
}

/// The wait of a signal whose request failed.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    until: Instant,
    /// Whether the receiver requested the wait.
    is_requested: bool,
}

impl Rules {
    /// Returns the rules for a sink with these settings; `is_forked` if the sink has forks.
    pub(super) fn new(sink: &dyn Sink, merge: MergeConfig, concurrency: usize, is_forked: bool) -> Self {
        Self {
            is_ordered: !is_forked,
            merge,
            max_request_bytes: Signal::ALL.map(|signal| sink.max_request_bytes(signal)),
            read_ahead_bytes: if is_forked {
                merge.max_bytes.saturating_mul(concurrency)
            } else {
                0
            },
        }
    }
}

impl Staging {
    pub(super) fn new(queue: QueueReceiver, rules: Rules) -> Self {
        Self {
            queue,
            is_over: false,
            limits: rules.max_request_bytes.map(RequestLimit::new),
            rules,
            fifos: Default::default(),
            next_place: 0,
            next_part: 0,
        }
    }

    /// Reads the batches that are in the queue now, within the read-ahead limit.
    pub(super) fn read(&mut self) {
        while self.wants_more()
            && let Some(queued) = self.queue.try_next()
        {
            self.push(queued);
        }
    }

    /// Returns whether more batches should be read from the queue.
    pub(super) fn wants_more(&self) -> bool {
        let staged: usize = self.fifos.iter().map(|fifo| fifo.bytes).sum();
        !self.is_over && (self.is_empty() || staged < self.rules.read_ahead_bytes)
    }

    /// Waits for the next batch of the queue, or its end. Cancel-safe.
    pub(super) async fn arrival(&mut self) {
        match self.queue.next().await {
            Some(queued) => self.push(queued),
            None => self.is_over = true,
        }
    }

    /// Closes the queue to new batches.
    pub(super) fn close(&mut self) {
        self.queue.close();
    }

    /// Stops reading: the remaining batches of a disk queue stay there.
    pub(super) fn stop(&mut self) {
        self.queue.stop();
        self.is_over = true;
    }

    /// Returns whether another sink owns the disk queue.
    pub(super) fn is_replaced(&self) -> bool {
        self.queue.is_replaced()
    }

    /// Waits until another sink owns the disk queue.
    pub(super) fn replaced(&self) -> impl Future<Output = ()> + use<> {
        self.queue.replaced()
    }

    /// Returns whether no batch is left, and no more can arrive.
    pub(super) fn is_finished(&self) -> bool {
        self.is_over && self.is_empty()
    }

    /// Returns the earliest time at which a request can start, or `None` while no batch waits, or while all waiting
    /// batches wait for a request in flight.
    pub(super) fn next_start(
        &self,
        in_flight: &InFlight,
        is_draining: bool,
        now: Instant,
    ) -> Option<Instant> {
        self.startable(in_flight)
            .map(|signal| self.ready_at(signal, is_draining).unwrap_or(now))
            .min()
    }

    /// Returns the batches of the next request if one can start now: those of the signal that waits longest.
    pub(super) fn next_group(
        &mut self,
        in_flight: &InFlight,
        is_draining: bool,
        now: Instant,
    ) -> Option<Group> {
        let is_ready = |signal: &Signal| self.ready_at(*signal, is_draining).is_none_or(|at| at <= now);
        let signal = self
            .startable(in_flight)
            .filter(is_ready)
            .min_by_key(|signal| self.fifo(*signal).place())?;
        self.fifo_mut(signal).hold = None;
        Some(self.form(signal))
    }

    /// Returns one batch for a probe of a receiver that refuses every request.
    pub(super) fn next_probe(
        &mut self,
        in_flight: &InFlight,
        is_draining: bool,
        now: Instant,
        refusals: &Refusals,
    ) -> Option<Group> {
        let is_ready = |signal: &Signal| self.ready_at(*signal, is_draining).is_none_or(|at| at <= now);
        let mut signals: Vec<Signal> = self.startable(in_flight).filter(is_ready).collect();
        signals.sort_by_key(|signal| self.fifo(*signal).place());
        let signal = refusals.signal_of_probe(&signals)?;
        let has_second = self.fifo(signal).batches.len() > 1;
        let index = usize::from(has_second && self.overtakes(signal, refusals));
        self.fifo_mut(signal).hold = None;
        let batch = self.fifo_mut(signal).remove(index)?;
        let max_bytes = self.limits[signal as usize].split_bytes();
        let first = if batch.queued.batch().bytes().len() > max_bytes {
            let mut parts = self.split(batch, max_bytes);
            let first = parts.remove(0);
            self.fifo_mut(signal).put_back(parts);
            first
        } else {
            batch
        };
        Some(Group::new(vec![first]))
    }

    /// Returns whether the next probe of a signal carries its second batch. Without forks, batches keep the order of the queue.
    pub(super) fn overtakes(&self, signal: Signal, refusals: &Refusals) -> bool {
        !self.rules.is_ordered && refusals.overtakes(signal)
    }

    /// Records that the receiver accepted a request of this size.
    pub(super) fn record_accepted(&mut self, signal: Signal, bytes: usize) {
        self.limits[signal as usize].record_accepted(bytes);
    }

    /// Records the failure of a merged request, whose size may be the reason.
    pub(super) fn record_failure(&mut self, signal: Signal, bytes: usize) {
        self.limits[signal as usize].record_failure(bytes);
    }

    /// Removes the batches of a signal that an accepted request has overtaken.
    pub(super) fn pop_overtaken(&mut self, signal: Signal, place: u64) -> Option<Queued> {
        let fifo = self.fifo_mut(signal);
        if fifo.place() < place {
            fifo.pop().map(|staged| staged.queued)
        } else {
            None
        }
    }

    /// Puts the batches of a refused request back, to be sent before all others of their signal, not before `until`, and not merged
    /// with others.
    pub(super) fn put_back_apart(&mut self, group: Group, until: Instant) {
        let fifo = &mut self.fifos[group.signal() as usize];
        fifo.hold = Some(Backoff {
            until,
            is_requested: false,
        });
        let mut batches = group.into_batches();
        let is_apart = batches.iter().any(|staged| staged.part.is_some());
        if batches.len() > 1 && !is_apart {
            for staged in &mut batches {
                staged.part = Some(self.next_part);
            }
            self.next_part += 1;
        }
        fifo.put_back(batches);
    }

    /// Puts the batches of a failed request back, to be sent before all others of their signal, and not before `until`.
    pub(super) fn put_back(&mut self, group: Group, until: Instant, is_requested: bool) {
        let fifo = self.fifo_mut(group.signal());
        fifo.hold = Some(Backoff { until, is_requested });
        fifo.put_back(group.into_batches());
    }

    /// Puts the batches of a refused request back in two parts, which are sent one after the other.
    pub(super) fn put_back_divided(&mut self, group: Group) {
        let signal = group.signal();
        let mut batches = group.into_batches();
        let half = batches.len() / 2;
        let (first, second) = (self.next_part, self.next_part + 1);
        self.next_part += 2;
        for (number, staged) in batches.iter_mut().enumerate() {
            staged.part = Some(if number < half { first } else { second });
        }
        self.fifo_mut(signal).put_back(batches);
    }

    /// Puts a request back that is too large for the receiver, to be sent in smaller requests like all later ones.
    ///
    /// # Errors
    /// Returns the request if it cannot be divided.
    pub(super) fn put_back_smaller(&mut self, group: Group) -> Result<(), Group> {
        let (signal, bytes) = (group.signal(), group.bytes());
        let limit = &mut self.limits[signal as usize];
        limit.record_too_large(bytes);
        let is_below = limit.merged_bytes() < bytes;
        if group.is_merged() && is_below {
            self.fifo_mut(signal).put_back(group.into_batches());
            return Ok(());
        }
        if group.is_merged() {
            self.put_back_divided(group);
            return Ok(());
        }
        let Some(only) = group.into_batches().pop() else {
            return Ok(());
        };
        let parts = self.split(only, bytes / 2);
        if parts.len() == 1 {
            return Err(Group::new(parts));
        }
        self.fifo_mut(signal).put_back(parts);
        Ok(())
    }

    /// Ends the waits of failed signals, except for those that the receiver requested.
    pub(super) fn release(&mut self) {
        for fifo in &mut self.fifos {
            fifo.hold = fifo.hold.filter(|hold| hold.is_requested);
        }
    }

    /// Returns the batch that waits longest.
    pub(super) fn oldest(&self) -> Option<&Queued> {
        let signal = self.oldest_signal()?;
        self.fifo(signal).batches.front().map(|staged| &staged.queued)
    }

    /// Removes the batch that waits longest, among the staged batches and those in the queue.
    pub(super) fn pop_oldest(&mut self) -> Option<Queued> {
        match self.oldest_signal() {
            Some(signal) => self.fifo_mut(signal).pop().map(|staged| staged.queued),
            None => self.queue.try_next(),
        }
    }

    /// Returns a future that completes as soon as a sender needs room in the queue.
    pub(super) fn space_requested(&self) -> impl Future<Output = ()> + use<> {
        self.queue.space_requested()
    }

    fn push(&mut self, queued: Queued) {
        let place = self.next_place;
        self.next_place += 1;
        let fifo = self.fifo_mut(queued.batch().signal());
        fifo.bytes += queued.batch().bytes().len();
        fifo.batches.push_back(StagedBatch {
            queued,
            place,
            part: None,
            refused_at: None,
        });
    }

    fn is_empty(&self) -> bool {
        self.fifos.iter().all(|fifo| fifo.batches.is_empty())
    }

    /// Returns the signals whose requests may start, given the requests in flight.
    fn startable(&self, in_flight: &InFlight) -> impl Iterator<Item = Signal> + use<'_> {
        let in_flight = *in_flight;
        let only = self.rules.is_ordered.then(|| {
            let is_free = in_flight.iter().all(|requests| *requests == 0);
            self.oldest_signal().filter(|_| is_free)
        });
        Signal::ALL.into_iter().filter(move |signal| {
            let fifo = self.fifo(*signal);
            match only {
                _ if fifo.batches.is_empty() => false,
                Some(only) => only == Some(*signal),
                None if in_flight[*signal as usize] == 0 => true,
                None if self.is_searching(*signal) => false,
                None => *signal != Signal::Metrics && self.is_full(*signal),
            }
        })
    }

    /// Returns the time from which the oldest batch of a signal may be sent, or `None` if it may be sent at once.
    fn ready_at(&self, signal: Signal, is_draining: bool) -> Option<Instant> {
        let fifo = self.fifo(signal);
        let held = fifo.hold.map(|hold| hold.until);
        let waits = !is_draining && !self.rules.is_ordered && !self.rules.merge.max_wait.is_zero();
        if held.is_some() || !waits || self.is_full(signal) {
            return held;
        }
        let accepted = fifo.batches.front()?.queued.accepted();
        Some(clock::later(accepted, self.rules.merge.max_wait))
    }

    /// Returns whether the next request of a signal would not grow by waiting.
    fn is_full(&self, signal: Signal) -> bool {
        let fifo = self.fifo(signal);
        let is_part = fifo.batches.front().is_some_and(|first| first.part.is_some());
        is_part || fifo.bytes >= self.max_bytes(signal)
    }

    /// Returns whether the limit of a merged request is being searched, one request at a time.
    fn is_searching(&self, signal: Signal) -> bool {
        let limit = &self.limits[signal as usize];
        limit.is_searching() && limit.merged_bytes() < self.rules.merge.max_bytes
    }

    /// Returns the maximum size of a merged request in bytes.
    fn max_bytes(&self, signal: Signal) -> usize {
        let limit = self.limits[signal as usize].merged_bytes();
        self.rules.merge.max_bytes.min(limit)
    }

    /// Removes the batches of the next request of a signal that has some.
    fn form(&mut self, signal: Signal) -> Group {
        let max_bytes = if self.rules.is_ordered {
            0
        } else {
            self.max_bytes(signal)
        };
        let max_request_bytes = self.limits[signal as usize].split_bytes();
        let first = self
            .fifo_mut(signal)
            .pop()
            .expect("invariant: a signal that can start has a batch");
        let first = if first.queued.batch().bytes().len() > max_request_bytes {
            self.first_part(first, max_request_bytes)
        } else {
            first
        };
        let fifo = self.fifo_mut(signal);
        let (part, mut bytes) = (first.part, first.queued.batch().bytes().len());
        let mut is_open = bytes < max_bytes && is_complete(first.queued.batch());
        let mut batches = vec![first];
        while is_open && let Some(next) = fifo.batches.front() {
            let batch = next.queued.batch();
            bytes += batch.bytes().len();
            is_open = next.part == part && bytes <= max_bytes && is_complete(batch);
            if is_open {
                batches.extend(fifo.pop());
            }
        }
        Group::new(batches)
    }

    /// Splits a batch that is too large, puts the other parts back and returns the first one, or the batch itself if it
    /// cannot be split.
    fn first_part(&mut self, batch: StagedBatch, max_bytes: usize) -> StagedBatch {
        let signal = batch.queued.batch().signal();
        let parts = self.split(batch, max_bytes);
        let fifo = self.fifo_mut(signal);
        fifo.put_back(parts);
        fifo.pop().expect("invariant: a split batch has parts")
    }

    /// Splits a batch into parts of at most `max_bytes`, which are not merged again. Returns the batch itself if it cannot be
    /// split.
    fn split(&mut self, batch: StagedBatch, max_bytes: usize) -> Vec<StagedBatch> {
        let whole = batch.queued.batch();
        let parts = match split::split(whole.signal(), whole.bytes(), max_bytes) {
            Ok(parts) if parts.len() > 1 => parts,
            _ => return vec![batch],
        };
        let (place, refused_at) = (batch.place, batch.refused_at);
        let parts = batch.queued.split(parts);
        parts
            .into_iter()
            .map(|queued| {
                self.next_part += 1;
                StagedBatch {
                    queued,
                    place,
                    part: Some(self.next_part - 1),
                    refused_at,
                }
            })
            .collect()
    }

    /// Returns the signal of the batch that waits longest.
    fn oldest_signal(&self) -> Option<Signal> {
        let waiting = Signal::ALL
            .into_iter()
            .filter(|signal| !self.fifo(*signal).batches.is_empty());
        waiting.min_by_key(|signal| self.fifo(*signal).place())
    }

    fn fifo(&self, signal: Signal) -> &Fifo {
        &self.fifos[signal as usize]
    }

    fn fifo_mut(&mut self, signal: Signal) -> &mut Fifo {
        &mut self.fifos[signal as usize]
    }
}

impl Fifo {
    /// Returns the place of the first batch, or `u64::MAX` if the queue is empty.
    fn place(&self) -> u64 {
        self.batches.front().map_or(u64::MAX, |first| first.place)
    }

    fn pop(&mut self) -> Option<StagedBatch> {
        let first = self.batches.pop_front()?;
        self.bytes -= first.queued.batch().bytes().len();
        Some(first)
    }

    fn remove(&mut self, index: usize) -> Option<StagedBatch> {
        let removed = self.batches.remove(index)?;
        self.bytes -= removed.queued.batch().bytes().len();
        Some(removed)
    }

    /// Puts batches in front of the others, except for those of an earlier place, which a probe has overtaken.
    fn put_back(&mut self, batches: Vec<StagedBatch>) {
        let Some(place) = batches.first().map(|first| first.place) else {
            return;
        };
        let is_overtaken = |staged: &&StagedBatch| staged.place < place;
        let at = self.batches.iter().take_while(is_overtaken).count();
        for staged in batches.into_iter().rev() {
            self.bytes += staged.queued.batch().bytes().len();
            self.batches.insert(at, staged);
        }
    }
}
