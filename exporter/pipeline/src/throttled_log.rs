//! A rate-limited log for events that a client can cause repeatedly: each kind is reported when it first happens, and
//! then once a minute with its count, so that a misbehaving client cannot fill a disk with messages.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::clock::{self, Instant};

/// The minimum interval between two reports of the same kind.
const EVERY: Duration = Duration::from_secs(60);
/// The limit on the kinds in memory; clients can invent names, which are kinds too.
const MAX_KINDS: usize = 1024;

/// Reports events; clones share the counts.
#[derive(Clone)]
pub struct ThrottledLog {
    write: Arc<Write>,
    kinds: Arc<Mutex<BTreeMap<String, MessageKind>>>,
}

type Write = dyn Fn(&dyn Display) + Send + Sync;

/// The time of the last report of a kind, and the number of events since.
struct MessageKind {
    reported: Instant,
    since: u64,
}

impl ThrottledLog {
    /// Creates a log that passes lines to `write`, from any thread.
    pub fn new(write: impl Fn(&dyn Display) + Send + Sync + 'static) -> Self {
        Self {
            write: Arc::new(write),
            kinds: Arc::default(),
        }
    }

    /// Reports an event of a kind, unless that kind was reported less than a minute ago.
    pub fn report(&self, kind: &str, event: &dyn Display) {
        match self.times(kind, clock::now()) {
            None => {}
            Some(1) => (self.write)(event),
            Some(times) => (self.write)(&format_args!(
                "{event} ({times} times in the last minute or more)"
            )),
        }
    }

    /// Returns the number of events of the kind since its last report, or `None` if it is too early for another report.
    fn times(&self, kind: &str, now: Instant) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = kinds.get_mut(kind) else {
            if kinds.len() >= MAX_KINDS {
                kinds.clear();
            }
            let first = MessageKind {
                reported: now,
                since: 0,
            };
            kinds.insert(kind.to_owned(), first);
            return Some(1);
        };
        known.since += 1;
        if now < clock::later(known.reported, EVERY) {
            return None;
        }
        known.reported = now;
        Some(std::mem::take(&mut known.since))
    }
}

impl fmt::Debug for ThrottledLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThrottledLog")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_event_is_reported_once_a_minute_with_its_count() {
        let log = ThrottledLog::new(|_| {});
        let begin = clock::now();
        let at = |secs| clock::later(begin, Duration::from_secs(secs));
        assert_eq!(log.times("a", at(0)), Some(1));
        assert_eq!(log.times("b", at(1)), Some(1));
        assert_eq!(log.times("a", at(1)), None);
        assert_eq!(log.times("a", at(59)), None);
        assert_eq!(log.times("a", at(60)), Some(3));
        assert_eq!(log.times("a", at(61)), None);
    }
}
