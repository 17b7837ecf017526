//! The output of derivations: gauges, counters, state sets and events by resource, encoded once.
//!
//! Counters and histograms are cumulative since the first value of their resource. A derived batch has the
//! ack of the batch that caused it, so that both are replayed together after a kill. It has the source of its
//! resource, so that a sink of selected sources receives only data derived from these.

mod resource;

use std::{collections::HashMap, sync::Arc};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Batch, SourceId,
    clock::{self, Instant},
};
use pulsetrain_semconv::Metric;

use self::resource::ResourceSignals;
use crate::config::MAX_REMEMBERED_BYTES;

/// The maximum number of resources with series. Beyond it the one that was silent for the longest time is
/// evicted, and its counters start again.
const MAX_RESOURCES: usize = 16_384;

/// The size at which a batch is sent, far below the 4 MiB that a gRPC receiver accepts by default.
const BATCH_BYTES: usize = 256 << 10;

/// The contents of a future batch: its source and signal, its items and bytes.
type Collected = ((SourceId, Signal), u32, Vec<u8>);

/// Collects the output of derivations.
#[derive(Debug)]
pub(crate) struct Signals {
    /// The arrival time of the current facts.
    arrival: Instant,
    /// The source of the current facts.
    source: SourceId,
    places: HashMap<Arc<[u8]>, usize>,
    resources: Vec<ResourceSignals>,
    /// The indexes in `resources` that are not in `places`.
    free: Vec<usize>,
    /// The length of the keys of `places`.
    bytes: usize,
    /// The number of resources evicted so far.
    evictions: u64,
    /// The indexes of resources with output since the last flush.
    dirty: Vec<usize>,
    /// The index of the last lookup, because the derivations of a step look up the same resource in turn.
    last: usize,
}

impl Default for Signals {
    fn default() -> Self {
        Self {
            arrival: clock::now(),
            source: SourceId::NONE,
            places: HashMap::new(),
            resources: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            evictions: 0,
            dirty: Vec::new(),
            last: 0,
        }
    }
}

impl Signals {
    /// Returns the bytes of the resources that it remembers.
    pub(crate) fn remembered_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of resources evicted so far.
    pub(crate) fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Returns the arrival time of the current facts. Waits use this clock, because event time may jump.
    pub(crate) fn arrival(&self) -> Instant {
        self.arrival
    }

    /// Sets the arrival time of the following facts.
    pub(crate) fn set_arrival(&mut self, now: Instant) {
        self.arrival = now;
    }

    /// Sets the source of the following facts. Resources that are new then belong to it.
    pub(crate) fn set_source(&mut self, source: SourceId) {
        self.source = source;
    }

    /// Records that the source of the facts has data of this resource, so that derived data of the resource
    /// belongs to that source.
    pub(crate) fn bind(&mut self, resource: &[u8]) {
        let place = self.place_of(resource);
        self.resources[place].source = self.source;
    }

    /// Returns the series of a resource, given as an encoded `Resource` message.
    pub(crate) fn resource(&mut self, resource: &[u8]) -> &mut ResourceSignals {
        let place = self.place_of(resource);
        if !std::mem::replace(&mut self.resources[place].is_dirty, true) {
            self.dirty.push(place);
        }
        &mut self.resources[place]
    }

    fn place_of(&mut self, resource: &[u8]) -> usize {
        let is_last = self.resources.get(self.last);
        let place = match is_last.filter(|last| **last.key() == *resource) {
            Some(_) => self.last,
            None => self.find_or_add(resource),
        };
        self.last = place;
        place
    }

    /// Returns whether a resource sends a metric itself.
    pub(crate) fn is_suppressed(&self, resource: &[u8], metric: &Metric) -> bool {
        let place = self.places.get(resource);
        place.is_some_and(|place| self.resources[*place].is_suppressed(metric))
    }

    /// Returns whether a batch is full.
    pub(crate) fn is_full(&self) -> bool {
        let sizes = self.dirty.iter().map(|place| self.resources[*place].len());
        sizes.sum::<usize>() >= BATCH_BYTES
    }

    /// Sends the output, derived from `batch`. `watch` is called with each batch.
    pub(crate) fn flush(&mut self, batch: &Batch, watch: Option<&dyn Fn(&Batch)>, out: &mut Vec<Batch>) {
        let mut collected: Vec<Collected> = Vec::new();
        for place in self.dirty.drain(..) {
            let resource = &mut self.resources[place];
            resource.is_dirty = false;
            for encoded in resource.finish() {
                let key = (resource.source, encoded.signal);
                // The top-level messages of OTLP are lists: their concatenation is one longer list.
                match collected.iter_mut().find(|(of, ..)| *of == key) {
                    Some((_, items, bytes)) => {
                        *items += encoded.items;
                        bytes.extend_from_slice(&encoded.bytes);
                    }
                    None => collected.push((key, encoded.items, encoded.bytes)),
                }
            }
        }
        collected.sort_unstable_by_key(|((source, signal), ..)| (*source, *signal == Signal::Logs));
        for ((source, signal), items, bytes) in collected {
            let derived = batch.derived(signal, items, bytes);
            // The sinks of another source must not delay the source of `batch`.
            let derived = if source == batch.source() {
                derived
            } else {
                derived.from_source(source).best_effort()
            };
            if let Some(watch) = watch {
                watch(&derived);
            }
            out.push(derived);
        }
    }

    fn find_or_add(&mut self, resource: &[u8]) -> usize {
        if let Some(place) = self.places.get(resource) {
            return *place;
        }
        let key: Arc<[u8]> = resource.into();
        while self.places.len() >= MAX_RESOURCES || self.bytes + key.len() > MAX_REMEMBERED_BYTES {
            if !self.evict() {
                break;
            }
        }
        self.bytes += key.len();
        let signals = ResourceSignals::new(Arc::clone(&key), self.source);
        let place = match self.free.pop() {
            Some(place) => {
                self.resources[place] = signals;
                place
            }
            None => {
                self.resources.push(signals);
                self.resources.len() - 1
            }
        };
        self.places.insert(key, place);
        place
    }

    /// Drops the resource that was silent for the longest time. Returns `false` if all have something to send.
    fn evict(&mut self) -> bool {
        let silent = self.places.values();
        let silent = silent.filter(|place| !self.resources[**place].is_dirty);
        let Some(place) = silent
            .min_by_key(|place| self.resources[**place].newest())
            .copied()
        else {
            return false;
        };
        let nothing = ResourceSignals::new(Arc::default(), SourceId::NONE);
        let former = std::mem::replace(&mut self.resources[place], nothing);
        self.places.remove(former.key());
        self.bytes -= former.key().len();
        self.free.push(place);
        self.evictions += 1;
        self.last = usize::MAX;
        true
    }
}
