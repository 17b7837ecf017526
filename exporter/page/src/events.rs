//! The newest events of a run: verdicts, checkpoints, evaluations, errors.

use std::{collections::VecDeque, time::Duration};

use pulsetrain_otlp::UnixNanos;

/// The maximum length of a stored text in characters.
pub(super) const MAX_TEXT_CHARACTERS: usize = 400;

/// Spans of the same name and step are one event if one starts within this time after the end of the other.
const JOIN_WITHIN: Duration = Duration::from_secs(60);

/// The maximum number of open events.
const MAX_OPEN: usize = 200;

/// An event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunEvent {
    /// The name of the event or span.
    pub(super) name: Box<str>,
    pub(super) time_nanos: UnixNanos,
    /// The end of a span.
    pub(super) end_nanos: Option<UnixNanos>,
    pub(super) step: Option<i64>,
    pub(super) rank: Option<i64>,
    pub(super) gpu: Option<Box<str>>,
    pub(super) text: Box<str>,
    /// The severity number of OpenTelemetry: `ERROR`, `WARN`, `INFO`.
    pub(super) severity: i32,
    /// The verdict, if the event is one.
    pub(super) verdict: Option<Verdict>,
}

/// A statement about the health of a run, a rank or a GPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) kind: Box<str>,
    pub(super) subject: Box<str>,
    pub(super) is_open: bool,
}

impl RunEvent {
    /// Returns the memory use of the event with its texts.
    pub(super) fn bytes(&self) -> usize {
        let of_verdict = |verdict: &Verdict| verdict.kind.len() + verdict.subject.len();
        size_of::<Self>()
            + self.name.len()
            + self.text.len()
            + self.gpu.as_ref().map_or(0, |gpu| gpu.len())
            + self.verdict.as_ref().map_or(0, of_verdict)
    }
}

/// The events of a run in order of arrival.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    events: VecDeque<RunEvent>,
    open: Vec<RunEvent>,
    /// The number of all events so far, which is the number of the next one.
    pub(super) count: u64,
    /// The number of events that the stream has sent.
    pub(super) streamed: u64,
}

impl EventLog {
    /// Adds an event. Beyond `most` events, the oldest is evicted.
    pub(super) fn push(&mut self, event: RunEvent, most: usize) {
        if let Some(verdict) = &event.verdict {
            self.open.retain(|other| {
                other
                    .verdict
                    .as_ref()
                    .is_none_or(|open| (&open.kind, &open.subject) != (&verdict.kind, &verdict.subject))
            });
            if verdict.is_open && self.open.len() < MAX_OPEN {
                self.open.push(event.clone());
            }
        } else if self.joins(&event) {
            return;
        }
        self.events.push_back(event);
        self.count += 1;
        while self.events.len() > most {
            self.events.pop_front();
        }
    }

    /// Merges the checkpoint spans of all ranks into one event, from the first start to the last end.
    fn joins(&mut self, event: &RunEvent) -> bool {
        let is_same = |other: &&mut RunEvent| {
            let overlaps = other
                .end_nanos
                .is_some_and(|end| event.time_nanos <= end.saturating_add(JOIN_WITHIN));
            overlaps && other.name == event.name && other.step == event.step
        };
        if event.end_nanos.is_none() || event.step.is_none() {
            return false;
        }
        let Some(same) = self.events.iter_mut().rev().take(64).find(is_same) else {
            return false;
        };
        same.time_nanos = same.time_nanos.min(event.time_nanos);
        same.end_nanos = same.end_nanos.max(event.end_nanos);
        true
    }

    /// Returns the stored events, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &RunEvent> {
        self.events.iter()
    }

    /// Returns the open verdicts.
    pub(super) fn open(&self) -> &[RunEvent] {
        &self.open
    }

    /// Returns the stored events that the stream has not sent.
    pub(super) fn unsent(&self) -> impl Iterator<Item = &RunEvent> {
        self.events.range(self.events.len() - self.unsent_count()..)
    }

    /// Returns the number of the first stored event that the stream has not sent.
    pub(super) fn unsent_from(&self) -> u64 {
        self.count - self.unsent_count() as u64
    }

    fn unsent_count(&self) -> usize {
        let unsent = usize::try_from(self.count - self.streamed).unwrap_or(usize::MAX);
        unsent.min(self.events.len())
    }

    /// Evicts all but the newest events.
    pub(super) fn shrink(&mut self, most: usize) {
        let surplus = self.events.len().saturating_sub(most);
        self.events.drain(..surplus);
        self.events.shrink_to_fit();
    }

    pub(super) fn bytes(&self) -> usize {
        let all = self.events.iter().chain(&self.open);
        all.map(RunEvent::bytes).sum()
    }
}

/// Returns a text of bounded length, without control characters.
pub(super) fn bounded(text: &str) -> Box<str> {
    let printable = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character });
    printable.take(MAX_TEXT_CHARACTERS).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kind: &str, subject: &str, is_open: bool) -> RunEvent {
        RunEvent {
            verdict: Some(Verdict {
                kind: kind.into(),
                subject: subject.into(),
                is_open,
            }),
            ..RunEvent::default()
        }
    }

    #[test]
    fn a_verdict_is_open_until_it_is_resolved() {
        let mut log = EventLog::default();
        log.push(verdict("straggler", "rank 3", true), 2);
        log.push(verdict("straggler", "rank 4", true), 2);
        log.push(verdict("straggler", "rank 3", false), 2);
        assert_eq!(log.open().len(), 1);
        assert_eq!((log.iter().count(), log.count), (2, 3));
    }

    #[test]
    fn unsent_events_keep_their_numbers_after_eviction() {
        let mut log = EventLog::default();
        for rank in 0..5 {
            log.push(verdict("straggler", &format!("rank {rank}"), true), 3);
        }
        log.streamed = 1;
        assert_eq!((log.unsent().count(), log.unsent_from()), (3, 2));
        log.streamed = 4;
        assert_eq!((log.unsent().count(), log.unsent_from()), (1, 4));
    }

    #[test]
    fn a_checkpoint_of_many_ranks_is_one_event() {
        let mut log = EventLog::default();
        for rank in 0..8 {
            let event = RunEvent {
                name: "save".into(),
                time_nanos: UnixNanos(100 - rank),
                end_nanos: Some(UnixNanos(200 + rank)),
                step: Some(7),
                ..RunEvent::default()
            };
            log.push(event, 10);
        }
        let events: Vec<_> = log.iter().collect();
        assert_eq!(
            (events.len(), events[0].time_nanos, events[0].end_nanos),
            (1, UnixNanos(93), Some(UnixNanos(207)))
        );
    }
}
