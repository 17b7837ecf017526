//! The memory that a part of the program uses for what clients send.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The bytes that a part remembers, and how often it forgot something at its limit. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct MemoryUse(Arc<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    bytes: AtomicU64,
    evicted: AtomicU64,
}

impl MemoryUse {
    /// Records the present number of bytes, and of evictions since the start.
    pub fn record(&self, bytes: usize, evicted: u64) {
        self.0.bytes.store(bytes as u64, Ordering::Relaxed);
        self.0.evicted.store(evicted, Ordering::Relaxed);
    }

    /// Returns the present number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of evictions.
    pub fn evicted(&self) -> u64 {
        self.0.evicted.load(Ordering::Relaxed)
    }
}
