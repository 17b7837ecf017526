//! Random times at which a test kills a process that follows logs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use fastrand::Rng;

use crate::{Process, wait_until};

/// The progress of a process that follows logs: the size of its output file and the time of its checkpoint file.
#[derive(Debug)]
pub struct Progress {
    out: PathBuf,
    positions: PathBuf,
    seen: Seen,
}

#[derive(Debug, PartialEq)]
struct Seen {
    out_bytes: u64,
    saved: Option<SystemTime>,
}

impl Progress {
    /// Reads the current state of the output file and of the checkpoint file.
    pub fn new(out: PathBuf, positions: PathBuf) -> Self {
        let seen = Seen::read(&out, &positions);
        Self { out, positions, seen }
    }

    /// Waits for a random event (none, the start, a delivery, a checkpoint), and then for a random time.
    pub fn wait_for_kill_time(&self, follower: &Process, random: &mut Rng) {
        let now = || Seen::read(&self.out, &self.positions);
        match random.u8(0..4) {
            0 => {}
            1 => wait_until_begun(follower),
            2 => wait_until("it has delivered", || now().out_bytes != self.seen.out_bytes),
            _ => wait_until("it has written its checkpoint", || now().saved != self.seen.saved),
        }
        spin(random);
    }
}

impl Seen {
    fn read(out: &Path, positions: &Path) -> Self {
        Self {
            out_bytes: fs::metadata(out).map_or(0, |file| file.len()),
            saved: fs::metadata(positions).and_then(|file| file.modified()).ok(),
        }
    }
}

/// Waits until the log of the follower reports that it follows a file or waits for one.
pub fn wait_until_begun(follower: &Process) {
    wait_until("it has begun", || {
        let log = follower.log();
        log.contains("following") || log.contains("waiting")
    });
}

/// Spins for a random time of at most a few milliseconds.
pub fn spin(random: &mut Rng) {
    (0..random.u32(0..2_000_000)).for_each(|_| std::hint::spin_loop());
}
