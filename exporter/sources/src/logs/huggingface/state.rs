//! `trainer_state.json`: one JSON object whose `log_history` lists what was logged, with every digit and its step.

use memchr::memmem;

use super::ROWS;
use crate::{
    Place, Recorder, SkipReason,
    logs::{
        Begin, Identity, LogFormat, LogParser, Window,
        fields::{Field, Fields, Written},
        literal::{self, Objects},
    },
};

/// The row of `trainer_state.json` in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "hf-trainer-state",
    brief: "trainer_state.json of Hugging Face's Trainer",
    framework: "hf_trainer",
    shrinks: false,
    recognise,
    identify,
    parser: Begin::Known(|| Box::new(StateParser::default())),
    coverage: super::coverage_of_state,
};

const HISTORY: &[u8] = b"\"log_history\": [";

/// Entries have no time: each stands a millisecond after the one before, so that they keep their order.
const TICK_NANOS: u64 = 1_000_000;

fn recognise(head: &[u8]) -> Option<&'static str> {
    let is_object = head.trim_ascii_start().starts_with(b"{");
    (is_object && memmem::find(head, HISTORY).is_some()).then_some("an object with \"log_history\"")
}

fn identify(head: &[u8]) -> Identity {
    let first = memmem::find(head, HISTORY).and_then(|start| {
        let end = memchr::memchr(b'}', &head[start..])?;
        Some(head[start..start + end].to_vec())
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
    at: At,
}

impl Default for StateParser {
    fn default() -> Self {
        Self {
            objects: Objects::nested(),
            entries: Entries {
                fields: Fields::of("hf_trainer"),
                last_time: 0,
            },
            at: At::Before,
        }
    }
}

impl LogParser for StateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        if self.at == At::Before {
            let Some(start) = memmem::find(window.bytes, HISTORY) else {
                return if window.is_last {
                    window.bytes.len()
                } else {
                    window.bytes.len().saturating_sub(HISTORY.len())
                };
            };
            self.at = At::Within;
            done = start + HISTORY.len();
        }
        if self.at == At::Within {
            done = self.entries(window, done, recorder);
        }
        if self.at == At::After && self.totals(window, done, recorder) {
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
            self.entries.entry(fields, window, place, recorder);
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

    /// What follows the history: of the whole run, and but for its operations a repetition or configuration. Says whether
    /// all of it is there.
    fn totals(&mut self, window: Window<'_>, done: usize, recorder: &mut Recorder<'_>) -> bool {
        let rest = valid(&window.bytes[done..]).trim_start_matches([',', ' ', '\n', '\r', '\t']);
        let object = format!("{{{rest}");
        let Some((mut fields, _)) = literal::object(&object) else {
            return false;
        };
        fields.retain(|(key, _)| key == "total_flos");
        let entries = &mut self.entries;
        let written = entries.written(window, window.place(done));
        entries.fields.record(ROWS, written, &fields, &[], recorder);
        true
    }
}

/// Records what is listed.
#[derive(Debug)]
struct Entries {
    fields: Fields,
    last_time: u64,
}

impl Entries {
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
            self.fields.step(written.time_unix_nanos, step, recorder);
        }
        self.fields.record(ROWS, written, &fields, &[], recorder);
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
