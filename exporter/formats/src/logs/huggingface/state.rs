//! `trainer_state.json`: one JSON object whose `log_history` lists what was logged, with every digit and its step.
//!
//! Whoever saves the state again writes all of it anew; what it said before is not told again ([`HistoryDigest`]), and one whose history begins
//! otherwise is of another run.

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

/// So much may stand before the history: where it is longer, what it says is not looked at.
const LONGEST_HEAD: usize = 1 << 18;

fn detect(head: &[u8]) -> Option<&'static str> {
    let is_object = head.trim_ascii_start().starts_with(b"{");
    (is_object && memmem::find(head, HISTORY).is_some()).then_some("an object with \"log_history\"")
}

fn identify(head: &[u8]) -> RunHeader {
    let first = memmem::find(head, HISTORY).and_then(|start| {
        let end = memchr::memchr2(b'}', b']', &head[start + HISTORY.len()..])?;
        let first = &head[start..start + HISTORY.len() + end];
        // Before anything was logged, nothing tells the run from others.
        first[HISTORY.len()..].contains(&b'{').then(|| first.to_vec())
    });
    RunHeader {
        first_record: first.unwrap_or_default(),
        ..RunHeader::default()
    }
}

/// Where in the object the parser stands.
#[derive(Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Before,
    Within,
    After,
    Done,
}

#[derive(Debug)]
struct StateParser {
    entries: Entries,
    totals: Totals,
    told: HistoryDigest,
    at: At,
}

impl Default for StateParser {
    fn default() -> Self {
        Self {
            entries: Entries::default(),
            totals: Totals::default(),
            told: HistoryDigest::default(),
            at: At::Before,
        }
    }
}

impl LogParser for StateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        if window.start.offset == 0 && self.at != At::Before {
            // It is written anew.
            self.at = At::Before;
            self.entries.begin();
        }
        let mut done = 0;
        if self.at == At::Before {
            let Some(start) = memmem::find(window.bytes, HISTORY) else {
                return match window.bytes.len() {
                    len if window.is_last => len,
                    // Kept, because it says the settings.
                    len if window.start.offset == 0 && len < LONGEST_HEAD => 0,
                    len => len.saturating_sub(HISTORY.len()),
                };
            };
            self.totals.begin(valid(&window.bytes[..start]));
            self.at = At::Within;
            done = start + HISTORY.len();
        }
        if self.at == At::Within {
            done = self.entries(window, done, recorder);
        }
        if self.at == At::After && self.end(window, done, recorder) {
            self.at = At::Done;
        }
        // Until the object is whole, its end is waited for.
        if self.at == At::Done || window.is_last {
            done = window.bytes.len();
        }
        done
    }

    fn resync(&mut self) {
        self.at = At::Before;
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

    /// A run is known by the first entry of its history.
    fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        let Some(known) = self.told.first_entry() else {
            return Some(true);
        };
        let start = memmem::find(head, HISTORY)? + HISTORY.len();
        let first = valid(&head[start..]).trim_start();
        let len = literal::read(first, 0, &mut Vec::new())?.len;
        Some(hash(&first[..len]) == known)
    }

    /// Each checkpoint has a state with the whole history.
    fn shares_state(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Option<Json> {
        self.told.to_json()
    }

    fn restore(&mut self, told: &Json) -> bool {
        let told = HistoryDigest::of_json(told);
        let is_known = told.is_some();
        self.told = told.unwrap_or_default();
        is_known
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
                self.at = At::After;
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
                .take(listed, (window, position), &mut self.told, recorder);
            position = position.advanced_by(&entry.as_bytes()[..len]);
            rest = &entry[len..];
        }
        done += text.len() - rest.len();
        if window.is_last {
            let message = || "the file ends within its log_history".to_owned();
            recorder.report(SkipReason::IncompleteRecord, position, message);
            done = window.bytes.len();
        }
        done
    }

    /// What stands around the history: of the whole run. StepHeader whether all of it is there.
    fn end(&mut self, window: Window<'_>, done: usize, recorder: &mut Recorder<'_>) -> bool {
        let rest = valid(&window.bytes[done..]).trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let object = format!("{{{}{rest}", self.totals.head());
        let Some((fields, _)) = literal::object(&object) else {
            return false;
        };
        // Of an earlier state all is known, and what stands around it was true once.
        if !self.told.knows_more_than(self.entries.listed()) && !self.told.knows_around(hash(&object)) {
            let written = self.entries.written(window, window.position(done));
            let dictionaries = &mut self.entries.dictionaries;
            self.totals
                .record(written, fields, &mut self.told, dictionaries, recorder);
        }
        true
    }
}

/// As much of some bytes as is text.
fn valid(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
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

    /// Reads states that are written over one another.
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
    fn a_state_that_is_written_again_says_only_what_is_new() {
        let whole = state(&[3.0, 2.0, 1.0]);
        let (first, second) = (state(&[3.0]), state(&[3.0, 2.0]));
        let alone = read(std::slice::from_ref(&whole));
        assert_eq!((alone.records, alone.events), (3, 1));
        let grown = read(&[first, second, whole.clone(), whole]);
        assert_eq!((grown.records, grown.events), (3, 1));
        // What went on from an earlier checkpoint is new from there.
        assert_eq!(read(&[state(&[3.0, 2.0, 1.0]), state(&[3.0, 2.5])]).records, 4);
    }

    #[test]
    fn a_state_without_any_entry_tells_no_run_yet() {
        assert!(identify(state(&[]).as_bytes()).first_record.is_empty());
        let (one, two) = (state(&[3.0]), state(&[3.0, 2.0]));
        let first = identify(one.as_bytes()).first_record;
        assert_eq!(first, identify(two.as_bytes()).first_record);
        assert!(!first.is_empty());
    }
}
