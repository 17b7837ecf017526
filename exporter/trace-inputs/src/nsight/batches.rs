//! Messages of one resource and one scope, of a size that every receiver accepts.

use std::collections::BTreeMap;

use pulsetrain_otlp::{Signal, write::Buffer};
use pulsetrain_pipeline::spill::MemoryBudget;

use super::names::{Names, Owner};
use crate::from_perfetto::resource_batches::{MESSAGE_BYTES, ResourceScope};

/// Items that wait for others with the same resource and scope.
pub(super) struct Batches<'a, D> {
    waiting: BTreeMap<(Signal, Owner, String), Buffer>,
    bytes: usize,
    max_bytes: usize,
    messages: u64,
    names: &'a Names,
    deliver: &'a mut D,
}

impl<'a, E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>> Batches<'a, D> {
    pub(super) fn new(names: &'a Names, room: &MemoryBudget, deliver: &'a mut D) -> Self {
        Self {
            waiting: BTreeMap::new(),
            bytes: 0,
            max_bytes: room.bytes / 8,
            messages: 0,
            names,
            deliver,
        }
    }

    /// Adds an item, which is field 2 of its scope.
    pub(super) fn push(&mut self, signal: Signal, owner: Owner, scope: &str, item: &[u8]) -> Result<(), E> {
        let key = (signal, owner, scope.to_owned());
        let items = self.waiting.entry(key.clone()).or_default();
        let before = items.len();
        items.delimited(2, item);
        let is_full = items.len() >= MESSAGE_BYTES;
        self.bytes += items.len() - before;
        if is_full && let Some(items) = self.waiting.remove(&key) {
            self.send(&key, &items)?;
        }
        if self.bytes > self.max_bytes {
            self.send_all()?;
        }
        Ok(())
    }

    /// Sends all items.
    pub(super) fn send_all(&mut self) -> Result<(), E> {
        for (key, items) in std::mem::take(&mut self.waiting) {
            self.send(&key, &items)?;
        }
        Ok(())
    }

    fn send(&mut self, (signal, owner, scope): &(Signal, Owner, String), items: &Buffer) -> Result<(), E> {
        self.bytes -= items.len();
        self.messages += 1;
        let mut around = ResourceScope {
            resource: self.names.resource(*owner),
            ..ResourceScope::default()
        };
        around.scope.text(1, scope);
        (self.deliver)(*signal, around.wrap(items))
    }

    /// Returns the number of messages so far.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }
}
