//! Points that arrive at a steady rate during a measurement.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::contestants::Contestant;

pub(crate) const POINTS_PER_SEC: usize = 50_000;
pub(crate) const BATCH: usize = 500;

/// Runs `work` while points arrive. Also returns the time of the slowest batch in milliseconds.
pub(crate) fn while_points_come_in<T>(contestant: &dyn Contestant, work: impl FnOnce() -> T) -> (T, f64) {
    let (started, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let feeder = scope.spawn(|| feed(contestant, &started, &ended));
        while !started.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let result = work();
        ended.store(true, Ordering::Release);
        (result, feeder.join().unwrap())
    })
}

fn feed(contestant: &dyn Contestant, started: &AtomicBool, ended: &AtomicBool) -> f64 {
    let pace = Duration::from_secs_f64(BATCH as f64 / POINTS_PER_SEC as f64);
    let (mut next, mut batch, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while !ended.load(Ordering::Acquire) {
        let start = Instant::now();
        contestant.take(batch);
        slowest = slowest.max(start.elapsed());
        batch += 1;
        started.store(true, Ordering::Release);
        next += pace;
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    slowest.as_secs_f64() * 1e3
}
