//! Waiting for a condition: the only way in which a test lets time pass.

use std::{thread, time::Duration};

const PAUSE: Duration = Duration::from_millis(20);
const PROBES: usize = 3_000;

/// Returns as soon as `ready` says true; panics with `what` after a minute of probing.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    for _ in 0..PROBES {
        if ready() {
            return;
        }
        thread::sleep(PAUSE);
    }
    panic!("waited a minute in vain until {what}");
}
