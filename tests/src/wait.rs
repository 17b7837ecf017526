//! Waiting for a condition: the only way in which a test lets time pass.

use std::{
    thread,
    time::{Duration, Instant},
};

const PAUSE: Duration = Duration::from_millis(20);
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Returns as soon as `ready` returns true; panics with `what` after two minutes.
#[expect(
    clippy::disallowed_methods,
    reason = "a test gives up in real time, however long a look takes"
)]
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if ready() {
            return;
        }
        assert!(
            begun.elapsed() < MAX_WAIT,
            "waited two minutes in vain until {what}"
        );
        // An expensive check leaves processor time for the process under test.
        thread::sleep(PAUSE.max(looked.elapsed()));
    }
}

/// Polls `ready` several times a second; returns whether it became true within `longest`.
#[expect(
    clippy::disallowed_methods,
    reason = "a test gives up in real time, however long a look takes"
)]
pub fn wait_at_most(longest: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        let looked = Instant::now();
        if ready() {
            return true;
        }
        if begun.elapsed() > longest {
            return false;
        }
        thread::sleep((10 * PAUSE).max(looked.elapsed()));
    }
}

/// Calls a closure repeatedly for a real time; each call must wait for a condition of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "the length of an outage is measured by the clock of those who wait for its end"
)]
pub fn repeat_for(time: Duration, mut once: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        once();
    }
}
