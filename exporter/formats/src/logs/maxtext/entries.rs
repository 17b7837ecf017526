//! Parses the entries that the goodput recorder writes to Cloud Logging (`record_*` of `ml_goodput_measurement/src/goodput.py`
//! and `goodput_elastic.py`), exported to files. A sink to Cloud Storage writes a `LogEntry` a line. `gcloud logging read
//! --format=json` prints a list, newest first.
//!
//! [`entry`] parses one entry, [`timeline`] builds steps and spans from consecutive entries, [`table`] documents both. Only the
//! starts of steps are recorded, so a step lasts until the next one begins. Entries in newest-first order are buffered until
//! the oldest is read: at the end of their list or of the input, or, in followed lines, after a long silence. A list that is
//! exported again adds only its new entries.

mod entry;
mod table;
mod timeline;

use serde_json::{Value as Json, json};

use self::{
    entry::{Entry, Parsed},
    timeline::Timeline,
};
use crate::{
    logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window, parser::Positions},
    seen_ids::SeenIds,
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// The row of the entries of goodput in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "maxtext-goodput",
    brief: "Cloud Logging entries of ml-goodput-measurement",
    framework: "maxtext",
    continues_after_truncate: false,
    splits: true,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(EntriesParser::default())),
    coverage: table::coverage,
};

/// The key of the recorded ids in the saved state.
const SEEN_KEY: &str = "seen";

fn detect(head: &[u8]) -> Option<&'static str> {
    let has = |words: &str| memchr::memmem::find(head, words.as_bytes()).is_some();
    let is_text = memchr::memchr(0, head).is_none();
    let is_ours = is_text && has("\"job_name\"") && entry::TIMES.iter().any(|key| has(key));
    is_ours.then_some("entries with \"job_name\" and a time of goodput")
}

/// Returns the header of a run. All files of a job belong to one run, regardless of their first entries.
fn identify(head: &[u8]) -> RunHeader {
    let key = b"\"job_name\"";
    let rest = memchr::memmem::find(head, key).map(|at| &head[at + key.len()..]);
    let value = rest.and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
    let name = value.and_then(|value| {
        let mut values = serde_json::Deserializer::from_slice(value).into_iter::<String>();
        values.next()?.ok()
    });
    let name = name.filter(|name| !name.is_empty());
    RunHeader {
        first_record: name.clone().unwrap_or_default().into_bytes(),
        run_name: name,
        ..RunHeader::default()
    }
}

/// The order of the entries of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Unknown,
    OldestFirst,
    NewestFirst,
}

/// The maximum number of buffered entries in newest-first order.
const MAX_BUFFERED: usize = 1 << 18;

/// Parses the entries of one file.
#[derive(Debug, Default)]
struct EntriesParser {
    job: Option<String>,
    order: Order,
    buffered: Vec<Entry>,
    /// The time of the first entry.
    first_unix_nanos: Option<UnixNanos>,
    /// The time of the oldest recorded entry in newest-first order.
    oldest_recorded_unix_nanos: Option<UnixNanos>,
    timeline: Timeline,
    /// The time of the newest recorded entry, in this pass and in the pass before.
    recorded_until: [UnixNanos; 2],
    has_started: bool,
    /// Whether the entries are in a list, which every export replaces.
    is_list: bool,
    /// The emitted entries of a list.
    seen: SeenIds,
    /// Whether the parser is inside a list, whose end is explicit.
    is_in_list: bool,
    /// Whether the parser is in bytes outside of entries that are already reported.
    in_reported_gap: bool,
}

impl LogParser for EntriesParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        if window.start.offset == 0 && std::mem::replace(&mut self.has_started, true) {
            self.begin_pass();
        }
        let done = self.objects(window, recorder);
        if window.is_last {
            self.flush_buffered(recorder);
            self.timeline.end(recorder);
        }
        done
    }

    fn resync(&mut self) {
        self.in_reported_gap = true;
    }

    fn earliest_buffered(&self) -> Option<SourcePosition> {
        self.buffered.first().map(|entry| entry.position)
    }

    fn flush_buffered(&mut self, recorder: &mut Recorder<'_>) {
        if self.order == Order::NewestFirst {
            self.close_at_gap(recorder);
            self.buffered.reverse();
            self.buffered.sort_by_key(|entry| entry.time_unix_nanos);
        }
        for entry in std::mem::take(&mut self.buffered) {
            self.record(&entry, recorder);
        }
    }

    fn is_rewritten(&self) -> bool {
        self.is_list
    }

    fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        let job = identify(head).run_name?;
        Some(self.job.as_ref().is_none_or(|known| *known == job))
    }

    fn snapshot(&self) -> Option<Json> {
        if !self.is_list {
            return None;
        }
        let seen = self.seen.to_json(None)?;
        Some(json!({"job": self.job, SEEN_KEY: seen}))
    }

    fn restore(&mut self, state: &Json) -> bool {
        let seen = state.get(SEEN_KEY).and_then(SeenIds::of_json);
        let job = state.get("job").and_then(Json::as_str);
        self.is_list = seen.is_some();
        self.job = job.map(str::to_owned);
        self.seen = seen.unwrap_or_default().0;
        self.is_list
    }
}

impl EntriesParser {
    /// Begins another pass over the file, which was exported again with new entries.
    fn begin_pass(&mut self) {
        *self = Self {
            job: self.job.take(),
            timeline: std::mem::take(&mut self.timeline),
            recorded_until: [self.recorded_until[0]; 2],
            has_started: true,
            is_list: self.is_list,
            seen: std::mem::take(&mut self.seen),
            ..Self::default()
        };
        self.seen.begin_pass();
    }

    /// Records an entry. An entry of before a restart is replayed, so that steps and work that it began can end.
    fn record(&mut self, entry: &Entry, recorder: &mut Recorder<'_>) {
        let time = entry.time_unix_nanos;
        let Self { timeline, seen, .. } = self;
        let mut take = |recorder: &mut Recorder<'_>| {
            timeline.take(entry, recorder);
            recorder.end_of_record();
        };
        if !self.is_list || seen.is_new(entry.id, time.0) {
            take(recorder);
        } else if time > self.recorded_until[1] {
            recorder.replay(take);
        }
        self.recorded_until[0] = self.recorded_until[0].max(time);
    }

    fn objects(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        let mut positions = Positions::new(window);
        loop {
            done += self.skip_punctuation(&window.bytes[done..], recorder);
            let position = positions.at(done);
            let rest = &window.bytes[done..];
            let Some(first) = rest.first() else {
                return done;
            };
            let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Json>();
            match values.next().filter(|_| *first == b'{') {
                Some(Ok(object)) => {
                    self.in_reported_gap = false;
                    let text = &rest[..values.byte_offset()];
                    done += text.len();
                    self.object(&object, (text, position), recorder);
                }
                Some(Err(error)) if error.is_eof() && !window.is_last => return done,
                Some(Err(error)) if error.is_eof() => {
                    recorder.report(SkipReason::IncompleteRecord, position, || {
                        "the input ends inside this entry; it is skipped".to_owned()
                    });
                    return window.bytes.len();
                }
                _ => match memchr::memchr(b'\n', rest) {
                    None if !window.is_last => return done,
                    end => {
                        self.report_gap(position, recorder);
                        done += end.map_or(rest.len(), |end| end + 1);
                    }
                },
            }
        }
    }

    /// Returns the number of bytes before the next entry. The end of a list flushes its buffered entries.
    fn skip_punctuation(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> usize {
        let is_between = |byte: &&u8| byte.is_ascii_whitespace() || b"[],".contains(byte);
        let bytes = bytes.iter().take_while(is_between);
        bytes
            .inspect(|byte| match byte {
                b'[' => (self.is_in_list, self.is_list) = (true, true),
                b']' => {
                    self.is_in_list = false;
                    self.flush_buffered(recorder);
                }
                _ => {}
            })
            .count()
    }

    /// Reports a line that is not an entry. The lines that follow it are not reported again.
    fn report_gap(&mut self, position: SourcePosition, recorder: &mut Recorder<'_>) {
        if !std::mem::replace(&mut self.in_reported_gap, true) {
            recorder.report(SkipReason::UnrecognisedBytes, position, || {
                "the line is not a JSON object of Cloud Logging; it is skipped".to_owned()
            });
        }
    }

    fn object(
        &mut self,
        object: &Json,
        (text, position): (&[u8], SourcePosition),
        recorder: &mut Recorder<'_>,
    ) {
        match Entry::parse(object, text, position) {
            Parsed::Goodput(job, entry) => {
                if *self.job.get_or_insert_with(|| job.clone()) == job {
                    self.push(entry, recorder);
                } else {
                    recorder.skip_value(SkipReason::Ignored("entry_of_another_job"));
                }
            }
            Parsed::Another => recorder.skip_value(SkipReason::Ignored("entry_of_another_log")),
        }
    }

    /// Adds an entry. The first one waits for the second, which shows their order. In newest-first order each entry waits for
    /// all older ones.
    fn push(&mut self, entry: Entry, recorder: &mut Recorder<'_>) {
        let first = *self.first_unix_nanos.get_or_insert(entry.time_unix_nanos);
        if self.order == Order::Unknown && entry.time_unix_nanos != first {
            let is_newest_first = entry.time_unix_nanos < first;
            self.order = if is_newest_first {
                Order::NewestFirst
            } else {
                Order::OldestFirst
            };
        }
        self.buffered.push(entry);
        if self.order == Order::OldestFirst || self.buffered.len() >= MAX_BUFFERED {
            self.flush_buffered(recorder);
        }
    }

    /// Closes open steps and work if the buffered entries are older than those already recorded: the gap between them is
    /// unknown.
    fn close_at_gap(&mut self, recorder: &mut Recorder<'_>) {
        let (Some(newest), Some(oldest)) = (self.buffered.first(), self.buffered.last()) else {
            return;
        };
        let recorded_from = self.oldest_recorded_unix_nanos.replace(oldest.time_unix_nanos);
        if recorded_from.is_some_and(|recorded_from| newest.time_unix_nanos <= recorded_from) {
            recorder.report(SkipReason::IncompleteRecord, newest.position, || {
                "older entries follow newer ones that are already recorded; steps and work that span the gap are left out".to_owned()
            });
            std::mem::take(&mut self.timeline).end(recorder);
        }
    }
}

#[cfg(test)]
mod tests;
