//! The virtual time of a scenario, in seconds since its start, and the wall time of NVML's timestamps.
//!
//! Without a `clock` file, time is real and starts with the first use of the library. With one, a test sets the time: the file
//! has five little-endian words of 64 bits, `[second, rate, anchor, epoch, check]`. At the wall time `anchor` the scenario was
//! at `second`, and it advances at `rate` (0 is frozen, 1 is real time). `epoch` is the wall time of second zero. `check` is
//! the exclusive or of the others, so that a torn write is detected and read again. Seconds and rate are the bits of a double,
//! wall times are Unix nanoseconds.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::Path,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

const WORDS: usize = 5;
/// The polling interval of a call that waits for the virtual time.
const LOOK_AGAIN: Duration = Duration::from_micros(500);
/// The polling interval of a call that waits for an event while a test may set the time.
const EVENT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The shortest sleep, because the difference of two seconds of a scenario has rounding errors.
const MIN_SLEEP: Duration = Duration::from_millis(1);

/// The second after which no scenario changes: the upper limit of the clock and of every wait.
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
    /// Opens the clock of the file at `path`; real time if there is no such file.
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

    /// Returns the current second of the scenario.
    pub(crate) fn now(&self) -> f64 {
        self.setting().now().min(END)
    }

    /// Returns NVML's timestamp of a second, in Unix microseconds.
    pub(crate) fn stamp_micros(&self, second: f64) -> u64 {
        self.setting().epoch_unix_nanos / 1_000 + (second * 1e6).round() as u64
    }

    /// Waits until the scenario has reached a second.
    pub(crate) fn wait_until(&self, second: f64) {
        while self.now() < second {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Polls `look` until it returns a value, for at most `timeout` of real time. In real time it sleeps until `next_change_after`, the
    /// next second at which the scenario changes.
    pub(crate) fn wait_for<T>(
        &self,
        timeout: Duration,
        next_change_after: impl Fn(f64) -> f64,
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
                Some(_) => EVENT_POLL_INTERVAL,
                None => Duration::from_secs_f64(next_change_after(second).min(END) - second).max(MIN_SLEEP),
            };
            thread::sleep(nap.min(Duration::from_nanos(left)));
        }
    }

    fn setting(&self) -> Setting {
        let Some(control) = &self.control else {
            return self.began;
        };
        // A write is only two instructions long. If the file is still torn after many reads, real time is the fallback.
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

/// Returns the content of the file, if it is complete.
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
