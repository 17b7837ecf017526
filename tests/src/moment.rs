//! The moment at which something that follows logs is killed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use fastrand::Rng;

use crate::{Process, wait_until};

/// What is seen from outside of one that follows logs: what it has written, and when it kept its positions.
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
    /// How far it is: by the file that it writes to, and by that in which it keeps its positions.
    pub fn of(out: PathBuf, positions: PathBuf) -> Self {
        let seen = Seen::of(&out, &positions);
        Self { out, positions, seen }
    }

    /// Waits for nothing, for its begin, for a delivery or for kept positions, and then for a moment, all as chance has it.
    pub fn wait_for_a_moment(&self, follower: &Process, random: &mut Rng) {
        let now = || Seen::of(&self.out, &self.positions);
        match random.u8(0..4) {
            0 => {}
            1 => wait_until_begun(follower),
            2 => wait_until("it has delivered", || now().out_bytes != self.seen.out_bytes),
            _ => wait_until("it has kept its positions", || now().saved != self.seen.saved),
        }
        spin(random);
    }
}

impl Seen {
    fn of(out: &Path, positions: &Path) -> Self {
        Self {
            out_bytes: fs::metadata(out).map_or(0, |file| file.len()),
            saved: fs::metadata(positions).and_then(|file| file.modified()).ok(),
        }
    }
}

/// Waits until the follower says that it follows, or that it waits for something to follow.
pub fn wait_until_begun(follower: &Process) {
    wait_until("it has begun", || {
        let log = follower.log();
        log.contains("following") || log.contains("waiting")
    });
}

/// Lets a moment pass that nobody can tell beforehand.
pub fn spin(random: &mut Rng) {
    (0..random.u32(0..2_000_000)).for_each(|_| std::hint::spin_loop());
}
