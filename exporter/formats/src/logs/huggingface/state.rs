//! Parses `trainer_state.json`: one JSON object whose `log_history` lists the logged entries with every digit and their steps.
//!
//! Each save rewrites the complete file. Entries recorded before are not recorded again ([`HistoryDigest`]). A file whose
//! history begins differently belongs to another run.

mod entries;
mod history_digest;
mod totals;

use memchr::memmem;
use serde_json::Value as Json;

use self::{
    entries::{Entries, Listed},
    history_digest::{HistoryDigest, hash},
    totals::Totals,
};
use crate::logs::{
    LogFormat, LogParser, Pace, ParserFactory, RunHeader, Window,
    clean::valid,
    literal::{self, Object},
};
use pulsetrain_record::{Recorder, SkipReason};

/// The row of `trainer_state.json` in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "hf-trainer-state",
    brief: "trainer_state.json of Hugging Face's Trainer",
    framework: "hf_trainer",
    continues_after_truncate: true,
    splits: true,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(StateParser::default())),
    coverage: super::coverage_of_state,
};

const HISTORY: &[u8] = b"\"log_history\": [";

/// The maximum size of the text before the history. The values of a longer text are ignored.
const MAX_HEAD_BYTES: usize = 1 << 18;

fn detect(head: &[u8]) -> Option<&'static str> {
    let is_object = head.trim_ascii_start().starts_with(b"{");
    (is_object && memmem::find(head, HISTORY).is_some()).then_some("an object with \"log_history\"")
}

fn identify(head: &[u8]) -> RunHeader {
    let first = memmem::find(head, HISTORY).and_then(|start| {
        let end = memchr::memchr2(b'}', b']', &head[start + HISTORY.len()..])?;
        let first = &head[start..start + HISTORY.len() + end];
        // A state without entries does not identify its run.
        first[HISTORY.len()..].contains(&b'{').then(|| first.to_vec())
    });
    RunHeader {
        first_record: first.unwrap_or_default(),
        ..RunHeader::default()
    }
}

/// The parser's progress in the object.
#[derive(Debug, Default, PartialEq, Eq)]
enum BarProgress {
    #[default]
    BeforeHistory,
    InHistory,
    AfterHistory,
    Done,
}

#[derive(Debug, Default)]
struct StateParser {
    entries: Entries,
    totals: Totals,
    digest: HistoryDigest,
    progress: BarProgress,
}

impl LogParser for StateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        if window.start.offset == 0 && self.progress != BarProgress::BeforeHistory {
            // The writer has replaced the file.
            self.progress = BarProgress::BeforeHistory;
            self.entries.begin();
        }
        let mut done = 0;
        if self.progress == BarProgress::BeforeHistory {
            let Some(start) = memmem::find(window.bytes, HISTORY) else {
                return match window.bytes.len() {
                    len if window.is_last => len,
                    // Kept, because it has the settings.
                    len if window.start.offset == 0 && len < MAX_HEAD_BYTES => 0,
                    len => len.saturating_sub(HISTORY.len()),
                };
            };
            self.totals.begin(valid(&window.bytes[..start]));
            self.progress = BarProgress::InHistory;
            done = start + HISTORY.len();
        }
        if self.progress == BarProgress::InHistory {
            done = self.entries(window, done, recorder);
        }
        if self.progress == BarProgress::AfterHistory && self.totals(window, done, recorder) {
            self.progress = BarProgress::Done;
        }
        // An incomplete object waits for its end.
        if self.progress == BarProgress::Done || window.is_last {
            done = window.bytes.len();
        }
        done
    }

    fn resync(&mut self) {
        self.progress = BarProgress::BeforeHistory;
    }

    fn invented_times(&self) -> u64 {
        self.entries.clock.invented()
    }

    fn set_pace(&mut self, pace: Pace) {
        self.entries.clock.set_pace(pace);
    }

    fn is_rewritten(&self) -> bool {
        true
    }

    /// Compares the first entries of the histories.
    fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        let Some(known) = self.digest.first_entry() else {
            return Some(true);
        };
        let start = memmem::find(head, HISTORY)? + HISTORY.len();
        let first = valid(&head[start..]).trim_start();
        let len = literal::read(first, 0, &mut Vec::new())?.len;
        Some(hash(&first[..len]) == known)
    }

    /// Every checkpoint has a state with the complete history.
    fn shares_state(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Option<Json> {
        self.digest.to_json()
    }

    fn restore(&mut self, state: &Json) -> bool {
        let digest = HistoryDigest::of_json(state);
        let is_valid = digest.is_some();
        self.digest = digest.unwrap_or_default();
        is_valid
    }
}

impl StateParser {
    fn entries(&mut self, window: Window<'_>, mut done: usize, recorder: &mut Recorder<'_>) -> usize {
        let text = valid(&window.bytes[done..]);
        let mut rest = text;
        let mut position = window.position(done);
        loop {
            let entry = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
            if entry.starts_with(']') {
                self.progress = BarProgress::AfterHistory;
                return done + text.len() - entry.len() + 1;
            }
            let mut fields = Vec::new();
            let Some(Object { len, nulls }) = literal::read(entry, 0, &mut fields) else {
                break;
            };
            position = position.advanced_by(&rest.as_bytes()[..rest.len() - entry.len()]);
            let listed = Listed {
                text: &entry[..len],
                fields,
                nulls,
            };
            self.entries
                .take(listed, (window, position), &mut self.digest, recorder);
            position = position.advanced_by(&entry.as_bytes()[..len]);
            rest = &entry[len..];
        }
        done += text.len() - rest.len();
        if window.is_last {
            let message = || {
                "the file ends inside log_history; the trainer is saving it, or the save was interrupted"
                    .to_owned()
            };
            recorder.report(SkipReason::IncompleteRecord, position, message);
            done = window.bytes.len();
        }
        done
    }

    /// Records the totals: the fields before and after the history. Returns whether the object is complete.
    fn totals(&mut self, window: Window<'_>, done: usize, recorder: &mut Recorder<'_>) -> bool {
        let rest = valid(&window.bytes[done..]).trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let object = format!("{{{}{rest}", self.totals.head());
        let Some((fields, _)) = literal::object(&object) else {
            return false;
        };
        // An older state adds nothing: all its entries are recorded, and its totals are outdated.
        if !self.digest.has_more_entries_than(self.entries.listed())
            && !self.digest.has_same_totals(hash(&object))
        {
            let meta = self.entries.meta(window, window.position(done));
            let dictionaries = &mut self.entries.dictionaries;
            self.totals
                .record(meta, fields, &mut self.digest, dictionaries, recorder);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{LogReader, ReadLimits};
    use pulsetrain_record::{Counts, Run};

    fn state(losses: &[f64]) -> String {
        let entries = losses
            .iter()
            .enumerate()
            .map(|(step, loss)| format!("{{\"epoch\": 0.5, \"loss\": {loss}, \"step\": {step}}}"));
        format!(
            "{{\n  \"best_metric\": 0.5,\n  \"epoch\": 1.0,\n  \"global_step\": {},\n  \"log_history\": [\n    {}\n  ],\n  \"max_steps\": 8,\n  \
             \"stateful_callbacks\": {{}},\n  \"total_flos\": 8.0\n}}",
            losses.len(),
            entries.collect::<Vec<_>>().join(",\n    ")
        )
    }

    /// Reads states that replace one another.
    fn read(states: &[String]) -> Counts {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let mut reader = LogReader::new(&FORMAT, ReadLimits::default());
        for state in states {
            reader.continue_in_new_input();
            for piece in state.as_bytes().chunks(7) {
                reader.push(piece, &mut recorder);
            }
        }
        reader.finish(&mut recorder);
        recorder.finish().0
    }

    #[test]
    fn a_rewritten_state_records_only_new_entries() {
        let complete = state(&[3.0, 2.0, 1.0]);
        let (first, second) = (state(&[3.0]), state(&[3.0, 2.0]));
        let alone = read(std::slice::from_ref(&complete));
        assert_eq!((alone.records, alone.events), (3, 1));
        let grown = read(&[first, second, complete.clone(), complete]);
        assert_eq!((grown.records, grown.events), (3, 1));
        // A run that continued from an earlier checkpoint has new entries from there.
        assert_eq!(read(&[state(&[3.0, 2.0, 1.0]), state(&[3.0, 2.5])]).records, 4);
    }

    #[test]
    fn a_state_without_entries_does_not_identify_a_run() {
        assert!(identify(state(&[]).as_bytes()).first_record.is_empty());
        let (one, two) = (state(&[3.0]), state(&[3.0, 2.0]));
        let first = identify(one.as_bytes()).first_record;
        assert_eq!(first, identify(two.as_bytes()).first_record);
        assert!(!first.is_empty());
    }
}
