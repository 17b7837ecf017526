//! The fake driver's clock file; `fake-nvml/src/clock.rs` documents its format.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::unix_nanos;

/// The clock of one driver.
#[derive(Debug)]
pub(super) struct Clock {
    file: File,
    epoch_unix_nanos: AtomicU64,
}

impl Clock {
    /// Creates a clock that is stopped at zero; the wall time of second zero is the current time.
    pub(super) fn create(path: &Path) -> Self {
        let clock = Self {
            file: File::create(path).expect("the clock can be made"),
            epoch_unix_nanos: AtomicU64::new(unix_nanos()),
        };
        clock.rest_at(0.0);
        clock
    }

    pub(super) fn rest_at(&self, second: f64) {
        self.write(second, 0.0);
    }

    pub(super) fn run_from(&self, second: f64) {
        let epoch = unix_nanos() - (second * 1e9) as u64;
        self.epoch_unix_nanos.store(epoch, Ordering::Relaxed);
        self.write(second, 1.0);
    }

    pub(super) fn unix_nanos(&self, second: f64) -> u64 {
        self.epoch_unix_nanos() / 1_000 * 1_000 + (second * 1e6).round() as u64 * 1_000
    }

    fn epoch_unix_nanos(&self) -> u64 {
        self.epoch_unix_nanos.load(Ordering::Relaxed)
    }

    fn write(&self, second: f64, rate: f64) {
        let words = [
            second.to_bits(),
            rate.to_bits(),
            unix_nanos(),
            self.epoch_unix_nanos(),
        ];
        let check = words.iter().fold(0, |check, word| check ^ word);
        let bytes: Vec<u8> = words
            .iter()
            .chain([&check])
            .flat_map(|word| word.to_le_bytes())
            .collect();
        self.file.write_all_at(&bytes, 0).expect("the clock can be set");
    }
}
