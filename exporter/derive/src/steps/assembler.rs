//! Assembles closed steps from batches. Memory is bounded: a new rank evicts the one that was silent for the
//! longest time, and the oldest open step closes early at the limit.

mod points;
mod series;
mod traces;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use pulsetrain_otlp::{
    UnixNanos,
    view::{Message, Resource},
};
use pulsetrain_pipeline::{
    Batch,
    clock::{self, Instant},
};
use pulsetrain_run::RunOrigin;

use super::{Constants, RankId, RankInfo, StepFacts, group::Groups, interest::Interests, pending::RankSteps};
use crate::{
    config::{MAX_REMEMBERED_BYTES, MAX_RESOURCE_BYTES, SignalsConfig},
    wall_clock::is_future,
};

/// The maximum number of runs with constants.
const MAX_RUNS: usize = 4096;
/// The number of resources for each possible rank, because a rank may have several.
const RESOURCES_OF_A_RANK: usize = 4;

/// The facts of an encoded resource, which most batches repeat.
#[derive(Clone, Debug)]
struct KnownResource {
    /// The rank, or `None` for a resource without one.
    rank: Option<RankId>,
    origin: Arc<RunOrigin>,
}

/// Assembles the steps of all ranks.
#[derive(Debug)]
pub(crate) struct Assembler {
    config: SignalsConfig,
    pub(crate) interests: Interests,
    ranks: HashMap<RankId, RankSteps>,
    by_resource: HashMap<Box<[u8]>, KnownResource>,
    /// The length of the keys of `by_resource`.
    known_bytes: usize,
    /// The length of the resources in `ranks`.
    rank_bytes: usize,
    by_key: HashMap<(Arc<str>, i64, i64), RankId>,
    constants: HashMap<Arc<str>, Constants>,
    /// The deadlines of open steps, the earliest first. Entries of closed steps are skipped.
    deadlines: VecDeque<(Instant, RankId, i64)>,
    open: usize,
    next_id: u32,
    /// The ranks in the current batch.
    touched: HashSet<RankId>,
    groups: Groups,
    newest: UnixNanos,
    evicted: Vec<RankId>,
    /// The number of ranks evicted so far, and of uses of resources that are too long.
    evictions: u64,
    /// Steps that a restart has closed while a batch was decoded.
    before_restart: Vec<StepFacts>,
}

impl Assembler {
    /// Returns an assembler without ranks.
    pub(crate) fn new(interests: Interests, config: SignalsConfig) -> Self {
        Self {
            config,
            interests,
            ranks: HashMap::new(),
            by_resource: HashMap::new(),
            known_bytes: 0,
            rank_bytes: 0,
            by_key: HashMap::new(),
            constants: HashMap::new(),
            deadlines: VecDeque::new(),
            open: 0,
            next_id: 0,
            touched: HashSet::new(),
            groups: Groups::default(),
            newest: UnixNanos::default(),
            evicted: Vec::new(),
            evictions: 0,
            before_restart: Vec::new(),
        }
    }

    /// Returns the bytes of the resources that it remembers.
    pub(crate) fn remembered_bytes(&self) -> usize {
        self.known_bytes + self.rank_bytes
    }

    /// Returns the number of ranks evicted so far, and of uses of resources that are too long.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Returns the newest event time.
    pub(crate) fn newest(&self) -> UnixNanos {
        self.newest
    }

    /// Returns the ranks that were evicted since the last call.
    pub(crate) fn take_evicted(&mut self) -> Vec<RankId> {
        std::mem::take(&mut self.evicted)
    }

    /// Returns when the first open step closes by its deadline.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.deadlines.front().map(|(deadline, ..)| *deadline)
    }

    /// Closes the steps of the ranks in the last batch.
    pub(crate) fn close_touched(&mut self, now: Instant, out: &mut Vec<StepFacts>) {
        out.append(&mut self.before_restart);
        let mut touched = std::mem::take(&mut self.touched);
        for rank in touched.drain() {
            self.close(rank, now, out);
        }
        self.touched = touched;
        while self.open > self.config.max_open {
            let Some((_, rank, number)) = self.deadlines.pop_front() else {
                break;
            };
            if self.is_open(rank, number) {
                self.close_first(rank, out);
            }
        }
        self.drop_closed_deadlines();
    }

    /// Closes the open steps of a rank that repeats steps, because their numbers now belong to other steps.
    fn close_before_restart(&mut self, id: RankId) {
        let mut closed = std::mem::take(&mut self.before_restart);
        if let Some(rank) = self.ranks.get_mut(&id) {
            rank.restart();
        }
        self.close_steps_of(id, &mut closed);
        self.before_restart = closed;
    }

    /// Closes the steps whose deadline has passed.
    pub(crate) fn close_late(&mut self, now: Instant, out: &mut Vec<StepFacts>) {
        while let Some((deadline, rank, _)) = self.deadlines.front().copied()
            && deadline <= now
        {
            self.deadlines.pop_front();
            self.close(rank, now, out);
        }
        self.drop_closed_deadlines();
    }

    /// Closes the steps of a rank. Nothing is added to them any more.
    pub(crate) fn close_rank(&mut self, rank: RankId, out: &mut Vec<StepFacts>) {
        self.close_steps_of(rank, out);
        self.drop_closed_deadlines();
    }

    /// Closes all steps, those of each rank in order.
    pub(crate) fn close_all(&mut self, out: &mut Vec<StepFacts>) {
        let mut ranks: Vec<RankId> = self.ranks.keys().copied().collect();
        ranks.sort_unstable();
        for rank in ranks {
            self.close_steps_of(rank, out);
        }
        self.deadlines.clear();
    }

    fn close_steps_of(&mut self, rank: RankId, out: &mut Vec<StepFacts>) {
        while self.ranks.get(&rank).is_some_and(|rank| rank.len() > 0) {
            self.close_first(rank, out);
        }
    }

    /// Returns the rank and the origin of an encoded resource, or `None` for one that is too long.
    fn known_resource(&mut self, resource: &[u8], now: Instant) -> Option<KnownResource> {
        if let Some(known) = self.by_resource.get(resource) {
            return Some(known.clone());
        }
        if resource.len() > MAX_RESOURCE_BYTES {
            self.evictions += 1;
            return None;
        }
        let attributes = Resource::decode(resource).map(|resource| resource.attributes);
        let origin = RunOrigin::from_attributes(attributes.unwrap_or_default());
        let known = KnownResource {
            rank: self.find_or_add(resource, &origin, now),
            origin: Arc::new(origin),
        };
        self.known_bytes += resource.len();
        if self.by_resource.len() >= RESOURCES_OF_A_RANK * self.config.max_ranks
            || self.known_bytes > MAX_REMEMBERED_BYTES
        {
            self.by_resource.clear();
            self.known_bytes = resource.len();
        }
        self.by_resource.insert(resource.into(), known.clone());
        Some(known)
    }

    /// Returns the rank of a resource, or `None` if it names no run.
    fn find_or_add(&mut self, resource: &[u8], origin: &RunOrigin, now: Instant) -> Option<RankId> {
        let run = Arc::clone(origin.run_id.as_ref()?);
        if origin.rank.is_none() && origin.instance.as_ref() == Some(&run) {
            // The resource of a run, not of a rank.
            return None;
        }
        let (attempt, rank) = (
            origin.attempt.unwrap_or_default(),
            origin.rank.unwrap_or_default(),
        );
        let key = (Arc::clone(&run), attempt, rank);
        if let Some(id) = self.by_key.get(&key) {
            return Some(*id);
        }
        let id = RankId(self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        self.rank_bytes += resource.len();
        while self.ranks.len() >= self.config.max_ranks || self.rank_bytes > MAX_REMEMBERED_BYTES {
            if !self.evict() {
                break;
            }
        }
        let info = RankInfo {
            id,
            run,
            attempt,
            rank,
            world_size: origin.world_size,
            host: origin.host.clone(),
            resource: resource.into(),
        };
        let learning_until = clock::later(now, self.config.wait);
        self.ranks
            .insert(id, RankSteps::new(Arc::new(info), self.newest, learning_until));
        self.by_key.insert(key, id);
        Some(id)
    }

    /// Drops the rank that was silent for the longest time, with its open steps. Returns `false` without any.
    fn evict(&mut self) -> bool {
        let Some(id) = self
            .ranks
            .iter()
            .min_by_key(|(id, rank)| (rank.newest, **id))
            .map(|(id, _)| *id)
        else {
            return false;
        };
        if let Some(rank) = self.ranks.remove(&id) {
            self.open -= rank.len();
            self.rank_bytes -= rank.info.resource.len();
        }
        self.by_key.retain(|_, of| *of != id);
        self.by_resource.retain(|_, known| known.rank != Some(id));
        self.known_bytes = self.by_resource.keys().map(|resource| resource.len()).sum();
        self.evicted.push(id);
        self.evictions += 1;
        true
    }

    /// Records the opening of a step.
    fn opened(&mut self, rank: RankId, number: Option<i64>, deadline: Instant) {
        if let Some(number) = number {
            self.open += 1;
            self.deadlines.push_back((deadline, rank, number));
        }
        self.touched.insert(rank);
    }

    fn constants_of(&mut self, run: &Arc<str>) -> &mut Constants {
        if self.constants.len() >= MAX_RUNS && !self.constants.contains_key(run) {
            let known: HashSet<&Arc<str>> = self.by_key.keys().map(|(run, ..)| run).collect();
            self.constants.retain(|run, _| known.contains(run));
        }
        self.constants.entry(Arc::clone(run)).or_default()
    }

    fn close(&mut self, id: RankId, now: Instant, out: &mut Vec<StepFacts>) {
        self.close_with(id, |rank, constants| rank.close(now, constants, out));
    }

    fn close_first(&mut self, id: RankId, out: &mut Vec<StepFacts>) {
        self.close_with(id, |rank, constants| rank.close_first(constants, out));
    }

    fn close_with(&mut self, id: RankId, close: impl FnOnce(&mut RankSteps, &Constants)) {
        if let Some(rank) = self.ranks.get_mut(&id) {
            let constants = self.constants.get(&rank.info.run).copied();
            let before = rank.len();
            close(rank, &constants.unwrap_or_default());
            self.open -= before - rank.len();
        }
    }

    fn is_open(&self, rank: RankId, number: i64) -> bool {
        let rank = self.ranks.get(&rank);
        rank.is_some_and(|rank| rank.deadline(number).is_some())
    }

    fn drop_closed_deadlines(&mut self) {
        while let Some((_, rank, number)) = self.deadlines.front().copied()
            && !self.is_open(rank, number)
        {
            self.deadlines.pop_front();
        }
        if self.deadlines.len() > 2 * self.open + 1024 {
            let mut deadlines = std::mem::take(&mut self.deadlines);
            deadlines.retain(|(_, rank, number)| self.is_open(*rank, *number));
            self.deadlines = deadlines;
        }
    }

    /// Records event time. A time in the future is ignored, because it would stop the event time of all runs
    /// until then.
    pub(crate) fn observe_time(&mut self, time: UnixNanos) {
        if time > self.newest && !is_future(time) {
            self.newest = time;
        }
    }

    fn deadline(&self, now: Instant) -> Instant {
        clock::later(now, self.config.wait)
    }
}

/// Returns the bytes of the resource inside a `ResourceMetrics`, `ResourceSpans` or `ResourceLogs`, or empty
/// bytes.
pub(crate) fn resource_bytes(of_resource: &[u8]) -> &[u8] {
    use pulsetrain_otlp::wire::{Reader, WireValue};
    let mut fields = Reader::new(of_resource).map_while(Result::ok);
    let found = fields.find_map(|field| match (field.number, field.value) {
        (1, WireValue::Bytes(bytes)) => Some(bytes),
        _ => None,
    });
    found.unwrap_or_default()
}

/// Returns the handle of a batch: its ack without its contents.
pub(crate) fn handle(batch: &Batch) -> Batch {
    batch.with_contents(0, Vec::new())
}
