//! The virtual time of a scenario, in seconds since it began, and the wall time that NVML stamps its values with.
//!
//! Without a `clock` file time is real and begins when the library is first used. With one, a test sets it: the file
//! is five little-endian words of 64 bits, `[second, rate, anchor, epoch, check]`: at the wall time `anchor` the
//! scenario was at `second` and moves on at `rate` (0 is frozen, 1 is real time); `epoch` is the wall time that second
//! zero is stamped with; `check` is the exclusive or of the others, so that a half-written file is read again.
//! Seconds and rate are the bits of a double, wall times are nanoseconds since 1970.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const WORDS: usize = 5;
/// How often a call that waits for the virtual time looks at it.
const LOOK_AGAIN: Duration = Duration::from_micros(500);
/// How often one that waits for news looks for them where a test may move the time at any moment.
const LOOK_FOR_NEWS: Duration = Duration::from_millis(20);
/// The least that it sleeps: what falls between two of a scenario's seconds is a matter of rounding.
const SHORTEST_NAP: Duration = Duration::from_millis(1);

/// The second after which no scenario changes: no clock is later, and nothing waits for longer.
pub(crate) const END: f64 = 1e6;

/// The time of a scenario.
#[derive(Debug)]
pub(crate) struct Clock {
    control: Option<File>,
    began: Setting,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    second: f64,
    rate: f64,
    anchor_unix_nanos: u64,
    epoch_unix_nanos: u64,
}

impl Clock {
    /// The clock that the file at `path` sets, and real time where there is no such file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let control = match File::open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let now = unix_nanos();
        let began = Setting {
            second: 0.0,
            rate: 1.0,
            anchor_unix_nanos: now,
            epoch_unix_nanos: now,
        };
        Ok(Self { control, began })
    }

    /// The second of the scenario.
    pub(crate) fn now(&self) -> f64 {
        self.setting().now().min(END)
    }

    /// The microseconds since 1970 that NVML would stamp a value of that second with.
    pub(crate) fn stamp_micros(&self, second: f64) -> u64 {
        self.setting().epoch_unix_nanos / 1_000 + (second * 1e6).round() as u64
    }

    /// Waits until the scenario has come to a second.
    pub(crate) fn wait_until(&self, second: f64) {
        while self.now() < second {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Waits for an answer of `look`, and no longer than `timeout` of real time. A driver is woken by its hardware; we sleep
    /// until `next_news`, the second after this one at which the scenario changes, and cost nothing until then.
    pub(crate) fn wait_for<T>(
        &self,
        timeout: Duration,
        next_news: impl Fn(f64) -> f64,
        mut look: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let deadline = unix_nanos().saturating_add(timeout.as_nanos() as u64);
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            let left = deadline.saturating_sub(unix_nanos());
            if left == 0 {
                return None;
            }
            let second = self.now();
            let nap = match self.control {
                Some(_) => LOOK_FOR_NEWS,
                None => Duration::from_secs_f64(next_news(second).min(END) - second).max(SHORTEST_NAP),
            };
            thread::sleep(nap.min(Duration::from_nanos(left)));
        }
    }

    fn setting(&self) -> Setting {
        let Some(control) = &self.control else {
            return self.began;
        };
        // A write is two instructions long; a file that stays torn is no clock, and real time is better than none.
        let complete = (0..1_000).find_map(|_| {
            let setting = read(control);
            if setting.is_none() {
                thread::yield_now();
            }
            setting
        });
        complete.unwrap_or(self.began)
    }
}

impl Setting {
    fn now(self) -> f64 {
        if self.rate == 0.0 {
            return self.second;
        }
        let moved = unix_nanos() as i64 - self.anchor_unix_nanos as i64;
        self.second + self.rate * (moved as f64 / 1e9)
    }
}

/// The content of the file, if it is complete.
fn read(control: &File) -> Option<Setting> {
    let mut bytes = [0; WORDS * 8];
    control.read_exact_at(&mut bytes, 0).ok()?;
    let word = |index: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        u64::from_le_bytes(word)
    };
    let complete = (0..WORDS - 1).map(word).fold(0, |check, word| check ^ word) == word(WORDS - 1);
    complete.then(|| Setting {
        second: f64::from_bits(word(0)),
        rate: f64::from_bits(word(1)),
        anchor_unix_nanos: word(2),
        epoch_unix_nanos: word(3),
    })
}

#[expect(clippy::disallowed_methods, reason = "this is the fake driver's clock module")]
fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_nanos() as u64
}
