//! `trainer_state.json`: one JSON object whose `log_history` lists what was logged, with every digit and its step.
//!
//! Whoever saves the state again writes all of it anew; what the history had before is not read again.

mod totals;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use self::totals::Totals;
use super::keys::Dictionaries;
use crate::{
    Place, Recorder, SkipReason,
    logs::{
        Begin, Identity, LogFormat, LogParser, Window,
        fields::{Field, Written},
        literal::{self, Objects},
    },
};

/// The row of `trainer_state.json` in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "hf-trainer-state",
    brief: "trainer_state.json of Hugging Face's Trainer",
    framework: "hf_trainer",
    shrinks: true,
    recognise,
    identify,
    parser: Begin::Known(|| Box::new(StateParser::default())),
    coverage: super::coverage_of_state,
};

const HISTORY: &[u8] = b"\"log_history\": [";

/// So much may stand before the history: where it is longer, what it says is not looked at.
const LONGEST_HEAD: usize = 1 << 18;

/// Entries have no time: each stands a millisecond after the one before, so that they keep their order.
const TICK_NANOS: u64 = 1_000_000;

fn recognise(head: &[u8]) -> Option<&'static str> {
    let is_object = head.trim_ascii_start().starts_with(b"{");
    (is_object && memmem::find(head, HISTORY).is_some()).then_some("an object with \"log_history\"")
}

fn identify(head: &[u8]) -> Identity {
    let first = memmem::find(head, HISTORY).and_then(|start| {
        let end = memchr::memchr2(b'}', b']', &head[start + HISTORY.len()..])?;
        let first = &head[start..start + HISTORY.len() + end];
        // Before anything was logged, nothing tells the run from others.
        first[HISTORY.len()..].contains(&b'{').then(|| first.to_vec())
    });
    Identity {
        first_record: first.unwrap_or_default(),
        ..Identity::default()
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
    objects: Objects,
    entries: Entries,
    totals: Totals,
    at: At,
}

impl Default for StateParser {
    fn default() -> Self {
        Self {
            objects: Objects::nested(),
            entries: Entries::default(),
            totals: Totals::default(),
            at: At::Before,
        }
    }
}

impl LogParser for StateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        if window.start.offset == 0 && self.at != At::Before {
            // It is written anew.
            self.at = At::Before;
            self.entries.place = 0;
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

    fn lose_sync(&mut self) {
        self.at = At::Before;
    }
}

impl StateParser {
    fn entries(&mut self, window: Window<'_>, mut done: usize, recorder: &mut Recorder<'_>) -> usize {
        let text = valid(&window.bytes[done..]);
        let mut rest = text;
        let mut place = window.place(done);
        loop {
            let entry = rest.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace());
            if entry.starts_with(']') {
                self.at = At::After;
                return done + text.len() - entry.len() + 1;
            }
            let mut fields = Vec::new();
            let Some(len) = self.objects.read(entry, &mut fields) else {
                break;
            };
            place = place.behind(&rest.as_bytes()[..rest.len() - entry.len()]);
            if !self.entries.is_known(&entry[..len]) {
                self.entries.entry(fields, window, place, recorder);
            }
            place = place.behind(&entry.as_bytes()[..len]);
            rest = &entry[len..];
        }
        done += text.len() - rest.len();
        if window.is_last {
            let message = || "the file ends within its log_history".to_owned();
            recorder.skip(SkipReason::IncompleteRecord, place, message);
            done = window.bytes.len();
        }
        done
    }

    /// What stands around the history: of the whole run. Says whether all of it is there.
    fn end(&mut self, window: Window<'_>, done: usize, recorder: &mut Recorder<'_>) -> bool {
        let rest = valid(&window.bytes[done..]).trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let object = format!("{{{}{rest}", self.totals.head());
        let Some((fields, _)) = literal::object(&object) else {
            return false;
        };
        let written = self.entries.written(window, window.place(done));
        self.totals
            .record(written, fields, &mut self.entries.dictionaries, recorder);
        true
    }
}

/// Records what is listed.
#[derive(Debug, Default)]
struct Entries {
    dictionaries: Dictionaries,
    last_time: u64,
    /// How many entries of the file that is read now have come.
    place: usize,
    /// What was listed, by its hash.
    known: Vec<u64>,
}

impl Entries {
    /// Whether an entry was listed before at its place; from the first that was not, all are new.
    fn is_known(&mut self, entry: &str) -> bool {
        let hash = xxh3_64(entry.as_bytes());
        let place = self.place;
        self.place += 1;
        if self.known.get(place) == Some(&hash) {
            return true;
        }
        self.known.truncate(place);
        self.known.push(hash);
        false
    }

    fn entry(
        &mut self,
        mut fields: Vec<Field<'_>>,
        window: Window<'_>,
        place: Place,
        recorder: &mut Recorder<'_>,
    ) {
        let written = Written {
            step: literal::number(&fields, "step").map(|step| step as i64),
            ..self.written(window, place)
        };
        fields.retain(|(key, _)| key != "step");
        if let Some(step) = written.step {
            self.dictionaries.step(written.time_unix_nanos, step, recorder);
        }
        self.dictionaries.record(written, fields, recorder);
        recorder.end_of_record();
    }

    fn written(&mut self, window: Window<'_>, place: Place) -> Written {
        self.last_time = window.time.unix_nanos.max(self.last_time + TICK_NANOS);
        Written {
            time_unix_nanos: self.last_time,
            step: None,
            place,
        }
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
    use crate::{Counts, Run, logs::LogReader, logs::ReadLimits};

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
            reader.go_on_elsewhere();
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
