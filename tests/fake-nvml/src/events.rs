//! Event sets: their registrations, and the number of events that each has received.
//!
//! A scenario declares its events with their seconds. A set receives every event after its registration exactly once, one per
//! call, also if a burst consists of identical events.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::scenario::Event;

/// NVML's event type of an XID error.
pub(crate) const XID: u64 = nvml_wrapper_sys::bindings::nvmlEventTypeXidCriticalError as u64;

/// All sets, by their handle.
#[derive(Debug, Default)]
pub(crate) struct EventSets(Mutex<Sets>);

#[derive(Debug, Default)]
pub(crate) struct Sets {
    last: usize,
    sets: BTreeMap<usize, EventSet>,
}

/// One event set.
#[derive(Debug, Default)]
pub(crate) struct EventSet {
    registered: Vec<Registration>,
    /// The number of received occurrences of each event of the scenario, by its index.
    received: BTreeMap<usize, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Registration {
    gpu: usize,
    kinds: u64,
    since: f64,
}

impl EventSets {
    fn lock(&self) -> MutexGuard<'_, Sets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a set and returns its handle.
    pub(crate) fn create(&self) -> usize {
        let mut sets = self.lock();
        sets.last += 1;
        let number = sets.last;
        sets.sets.insert(number, EventSet::default());
        number
    }

    /// Removes a set, and returns whether it existed.
    pub(crate) fn free(&self, number: usize) -> bool {
        self.lock().sets.remove(&number).is_some()
    }

    /// Calls `act` with a set, if it exists.
    pub(crate) fn with<T>(&self, number: usize, act: impl FnOnce(&mut EventSet) -> T) -> Option<T> {
        self.lock().sets.get_mut(&number).map(act)
    }
}

impl EventSet {
    /// Registers for the events of a GPU from `since` on.
    pub(crate) fn register(&mut self, gpu: usize, kinds: u64, since: f64) {
        self.registered.push(Registration { gpu, kinds, since });
    }

    /// Returns the GPUs of the registrations.
    pub(crate) fn gpus(&self) -> impl Iterator<Item = usize> {
        self.registered.iter().map(|registration| registration.gpu)
    }

    /// Returns the next event that the set has not received, and marks it as received.
    pub(crate) fn next<'a>(
        &mut self,
        events: &'a [Event],
        is_delivered: impl Fn(&Event) -> bool,
        second: f64,
    ) -> Option<&'a Event> {
        for (place, event) in events.iter().enumerate().filter(|(_, event)| is_delivered(event)) {
            let Some(since) = self.listens_since(event) else {
                continue;
            };
            let missed = event.happened_before(since);
            let received = self.received.entry(place).or_insert(missed);
            if *received < event.happened_until(second) {
                *received += 1;
                return Some(event);
            }
        }
        None
    }

    fn listens_since(&self, event: &Event) -> Option<f64> {
        let mut registered = self.registered.iter();
        let found = registered.find(|to| to.gpu == event.gpu && to.kinds & event.kind != 0);
        found.map(|registration| registration.since)
    }
}

impl Event {
    /// Returns the number of occurrences up to a second.
    fn happened_until(&self, second: f64) -> u64 {
        if second < self.at {
            return 0;
        }
        if self.every == 0.0 {
            return self.count;
        }
        let since_first = ((second - self.at) / self.every) as u64;
        self.count.min(since_first + 1)
    }

    /// Returns the second of the next occurrence after a second.
    pub(crate) fn next_after(&self, second: f64) -> Option<f64> {
        let times = self.happened_until(second);
        (times < self.count).then_some(self.at + times as f64 * self.every)
    }

    fn happened_before(&self, second: f64) -> u64 {
        self.happened_until(second.next_down())
    }
}
