//! What the receiver's user may want to know: said when it first happens, and then once a minute with how often it did. A client
//! that sends nonsense all day must not fill a disk with complaints.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};

use super::refusal::Refusal;

/// How often the same kind of thing is said.
const EVERY: Duration = Duration::from_secs(60);
/// So many kinds are remembered; names that clients make up are kinds too.
const KINDS: usize = 1024;

/// Says things; a clone counts with it.
#[derive(Clone)]
pub(super) struct Notices {
    tell: Arc<Tell>,
    said: Arc<Mutex<BTreeMap<String, Said>>>,
}

/// Takes what is said.
type Tell = dyn Fn(&dyn Display) + Send + Sync;

/// When something was said last, and how often it has happened since.
struct Said {
    at: Instant,
    since: u64,
}

impl Notices {
    pub(super) fn new(tell: impl Fn(&dyn Display) + Send + Sync + 'static) -> Self {
        Self {
            tell: Arc::new(tell),
            said: Arc::default(),
        }
    }

    /// A message was refused.
    pub(super) fn refused(&self, refusal: &Refusal) {
        self.say(refusal.kind(), &format_args!("refused a message: {refusal}"));
    }

    /// Something of a kind happened.
    pub(super) fn say(&self, kind: &str, what: &dyn Display) {
        match self.times(kind, clock::now()) {
            None => {}
            Some(1) => (self.tell)(what),
            Some(times) => (self.tell)(&format_args!("{what} ({times} times in the last minute or more)")),
        }
    }

    /// How often it has happened since it was last said; nothing where it is too soon to say it again.
    fn times(&self, kind: &str, now: Instant) -> Option<u64> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = said.get_mut(kind) else {
            if said.len() >= KINDS {
                said.clear();
            }
            said.insert(kind.to_owned(), Said { at: now, since: 0 });
            return Some(1);
        };
        known.since += 1;
        if now < clock::later(known.at, EVERY) {
            return None;
        }
        known.at = now;
        Some(std::mem::take(&mut known.since))
    }
}

impl fmt::Debug for Notices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notices")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_and_again_is_said_once_a_minute_with_its_count() {
        let notices = Notices::new(|_| {});
        let begin = clock::now();
        let at = |secs| clock::later(begin, Duration::from_secs(secs));
        assert_eq!(notices.times("a", at(0)), Some(1));
        assert_eq!(notices.times("b", at(1)), Some(1));
        assert_eq!(notices.times("a", at(1)), None);
        assert_eq!(notices.times("a", at(59)), None);
        assert_eq!(notices.times("a", at(60)), Some(3));
        assert_eq!(notices.times("a", at(61)), None);
    }
}
