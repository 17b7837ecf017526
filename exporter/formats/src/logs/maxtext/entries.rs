//! What the recorder of goodput writes to Cloud Logging (`record_*` of `ml_goodput_measurement/src/goodput.py` and
//! `goodput_elastic.py`), as it is exported to files: a `LogEntry` a line, as a sink writes to Cloud Storage, or the list that
//! `gcloud logging read --format=json` prints, newest first.
//!
//! [`entry`] reads one entry, [`timeline`] makes steps and spans of what follows each other, [`table`] documents both. Only the
//! beginnings of steps are recorded, so a step lasts until the next one begins. Entries that stand newest first are held until the oldest
//! has come: at the end of their list or of the input, or, in lines that are followed, when nothing more has come for long. A list
//! that is exported again says only what is new.

mod entry;
mod table;
mod timeline;

use serde_json::{Value as Json, json};

use self::{
    entry::{Entry, Of},
    timeline::Timeline,
};
use crate::{
    logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window},
    seen_ids::SeenIds,
};
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

fn detect(head: &[u8]) -> Option<&'static str> {
    let has = |words: &str| memchr::memmem::find(head, words.as_bytes()).is_some();
    let is_text = memchr::memchr(0, head).is_none();
    let is_ours = is_text && has("\"job_name\"") && entry::TIMES.iter().any(|key| has(key));
    is_ours.then_some("entries with \"job_name\" and a time of goodput")
}

/// Files of one job are of one run, whichever entries they begin with.
fn identify(head: &[u8]) -> RunHeader {
    let key = b"\"job_name\"";
    let behind = memchr::memmem::find(head, key).map(|at| &head[at + key.len()..]);
    let value = behind.and_then(|rest| rest.trim_ascii_start().strip_prefix(b":"));
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

/// In which order the entries of a file stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Unknown,
    OldestFirst,
    NewestFirst,
}

/// So many entries are held at most until their order is turned.
const MOST_HELD: usize = 1 << 18;

/// Reads the entries of one file.
#[derive(Debug, Default)]
struct EntriesParser {
    job: Option<String>,
    order: Order,
    held: Vec<Entry>,
    /// The time of the first entry.
    first_unix_nanos: Option<u64>,
    /// The time of the oldest entry of those that stand newest first and were told.
    told_from_unix_nanos: Option<u64>,
    timeline: Timeline,
    /// Until when entries were taken, now and before the file began again.
    taken_to: [u64; 2],
    has_started: bool,
    /// Whether the entries are in a list: who exports again writes it anew.
    is_list: bool,
    /// What was said of a list.
    said: SeenIds,
    /// Whether a list has begun, which shows its end.
    is_in_list: bool,
    /// Whether what stands here belongs to no entry and was said already.
    in_stray: bool,
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
        self.in_stray = true;
    }

    fn earliest_buffered(&self) -> Option<SourcePosition> {
        self.held.first().map(|entry| entry.position)
    }

    fn flush_buffered(&mut self, recorder: &mut Recorder<'_>) {
        if self.order == Order::NewestFirst {
            self.begin_older(recorder);
            self.held.reverse();
            self.held.sort_by_key(|entry| entry.time_unix_nanos);
        }
        for entry in std::mem::take(&mut self.held) {
            self.tell(&entry, recorder);
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
        let said = self.said.to_json(None)?;
        Some(json!({"job": self.job, "said": said}))
    }

    fn restore(&mut self, told: &Json) -> bool {
        let said = told.get("said").and_then(SeenIds::of_json);
        let job = told.get("job").and_then(Json::as_str);
        self.is_list = said.is_some();
        self.job = job.map(str::to_owned);
        self.said = said.unwrap_or_default().0;
        self.is_list
    }
}

impl EntriesParser {
    /// The file begins again: what was exported was exported again, with what came since.
    fn begin_pass(&mut self) {
        *self = Self {
            job: self.job.take(),
            timeline: std::mem::take(&mut self.timeline),
            taken_to: [self.taken_to[0]; 2],
            has_started: true,
            is_list: self.is_list,
            said: std::mem::take(&mut self.said),
            ..Self::default()
        };
        self.said.begin_pass();
    }

    /// Records an entry. One that a follower before this one has told is taken in, so that what goes on from it is known.
    fn tell(&mut self, entry: &Entry, recorder: &mut Recorder<'_>) {
        let time = entry.time_unix_nanos;
        let Self { timeline, said, .. } = self;
        let mut take = |recorder: &mut Recorder<'_>| {
            timeline.take(entry, recorder);
            recorder.end_of_record();
        };
        if !self.is_list || said.is_new(entry.id, time) {
            take(recorder);
        } else if time > self.taken_to[1] {
            recorder.replay(take);
        }
        self.taken_to[0] = self.taken_to[0].max(time);
    }

    fn objects(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        loop {
            done += self.between(&window.bytes[done..], recorder);
            let position = window.position(done);
            let rest = &window.bytes[done..];
            let Some(first) = rest.first() else {
                return done;
            };
            let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Json>();
            match values.next().filter(|_| *first == b'{') {
                Some(Ok(object)) => {
                    self.in_stray = false;
                    let text = &rest[..values.byte_offset()];
                    done += text.len();
                    self.object(&object, (text, position), recorder);
                }
                Some(Err(error)) if error.is_eof() && !window.is_last => return done,
                Some(Err(error)) if error.is_eof() => {
                    recorder.report(SkipReason::IncompleteRecord, position, || {
                        "the input ends within this entry".to_owned()
                    });
                    return window.bytes.len();
                }
                _ => match memchr::memchr(b'\n', rest) {
                    None if !window.is_last => return done,
                    end => {
                        self.stray(position, recorder);
                        done += end.map_or(rest.len(), |end| end + 1);
                    }
                },
            }
        }
    }

    /// How many bytes stand before the next entry; a list says with one of them that all have come.
    fn between(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) -> usize {
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

    /// A line that belongs to no entry; those that follow it are not told apart from it.
    fn stray(&mut self, position: SourcePosition, recorder: &mut Recorder<'_>) {
        if !std::mem::replace(&mut self.in_stray, true) {
            recorder.report(SkipReason::UnrecognisedBytes, position, || {
                "a line that is no JSON object of Cloud Logging".to_owned()
            });
        }
    }

    fn object(
        &mut self,
        object: &Json,
        (text, position): (&[u8], SourcePosition),
        recorder: &mut Recorder<'_>,
    ) {
        match Entry::of(object, text, position) {
            Of::Goodput(job, entry) => {
                if *self.job.get_or_insert_with(|| job.clone()) == job {
                    self.take(entry, recorder);
                } else {
                    recorder.skip_value(SkipReason::Ignored("entry_of_another_job"));
                }
            }
            Of::Another => recorder.skip_value(SkipReason::Ignored("entry_of_another_log")),
        }
    }

    /// The first entry waits for the second one, which shows their order; of the newest first, each waits for all older ones.
    fn take(&mut self, entry: Entry, recorder: &mut Recorder<'_>) {
        let first = *self.first_unix_nanos.get_or_insert(entry.time_unix_nanos);
        if self.order == Order::Unknown && entry.time_unix_nanos != first {
            let is_newest_first = entry.time_unix_nanos < first;
            self.order = if is_newest_first {
                Order::NewestFirst
            } else {
                Order::OldestFirst
            };
        }
        self.held.push(entry);
        if self.order == Order::OldestFirst || self.held.len() >= MOST_HELD {
            self.flush_buffered(recorder);
        }
    }

    /// Where what is held is older than what was told, nothing leads over: a step or work that goes on there has no end.
    fn begin_older(&mut self, recorder: &mut Recorder<'_>) {
        let (Some(newest), Some(oldest)) = (self.held.first(), self.held.last()) else {
            return;
        };
        let told_from = self.told_from_unix_nanos.replace(oldest.time_unix_nanos);
        if told_from.is_some_and(|told_from| newest.time_unix_nanos <= told_from) {
            recorder.report(SkipReason::IncompleteRecord, newest.position, || {
                "older entries come behind newer ones that were told: what goes on from these to those has no end".to_owned()
            });
            std::mem::take(&mut self.timeline).end(recorder);
        }
    }
}

#[cfg(test)]
mod tests;
