//! Converts records and their items to points, options and events.

use pulsetrain_mapping::{RecordMeta, TagIndex, record_option};
use pulsetrain_otlp::{
    UnixNanos,
    wire::{Field, Reader, WireError, WireValue as Wire},
    write::AttributeValue as Out,
};

use super::{
    WandbParser, about,
    item::{self, Item, ItemValue},
    record::{self, Record},
};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// The rule for the keys with which wandb numbers its own records.
const CLOCK: SkipReason = SkipReason::Ignored("wandb_clock");
/// The rule for summary values that repeat a history.
const SUMMARY: SkipReason = SkipReason::Ignored("wandb_summary");
/// The rule for console output, which may be private.
const CONSOLE: SkipReason = SkipReason::Ignored("console_output");
/// The rule for records about wandb itself.
const BOOKKEEPING: SkipReason = SkipReason::Ignored("wandb_bookkeeping");
/// The rule for media files of the run.
const MEDIA: SkipReason = SkipReason::Ignored("media");

/// The keys with which wandb numbers its own records.
const CLOCK_KEYS: [&str; 4] = ["_step", "_timestamp", "_runtime", "_wandb"];

/// The purpose of a key of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The time of the call.
    Time,
    /// The number of calls, used as the step if the trainer logs none.
    Count,
    /// Another of the keys with which wandb numbers its own records.
    Clock,
    /// The type of a flattened histogram, picture or table of newer versions.
    Type,
    /// A value that the program logged.
    Logged,
}

/// A key of a history.
#[derive(Debug)]
pub(super) struct Key {
    role: Role,
    /// The index of the key among the tags, once a value of it was recorded.
    tag: Option<TagIndex>,
}

impl Key {
    fn new(key: &str) -> Self {
        Self {
            role: Role::from_key(key),
            tag: None,
        }
    }
}

/// The last part of a key that holds the type of a flattened value.
const TYPE: &str = "_type";

impl Role {
    fn from_key(key: &str) -> Self {
        match key {
            "_timestamp" => Self::Time,
            "_step" => Self::Count,
            _ if CLOCK_KEYS.contains(&first_part(key)) => Self::Clock,
            _ if key.strip_suffix(TYPE).is_some_and(|of| of.ends_with('.')) => Self::Type,
            _ => Self::Logged,
        }
    }
}

/// The summary of one key.
#[derive(Debug)]
pub(super) enum SummaryEntry {
    /// A number of wandb's own records.
    Clock,
    /// A value that a history has.
    InHistory,
    /// A value that no history has, with its newest value as JSON.
    SummaryOnly(Option<Vec<u8>>),
}

impl SummaryEntry {
    fn new(key: &str, is_in_history: bool) -> Self {
        match Role::from_key(key) {
            Role::Logged | Role::Type if is_in_history => Self::InHistory,
            Role::Logged | Role::Type => Self::SummaryOnly(None),
            _ => Self::Clock,
        }
    }
}

impl WandbParser {
    /// Records the contents of a record.
    pub(super) fn record(&mut self, bytes: &[u8], position: SourcePosition, recorder: &mut Recorder<'_>) {
        let read = record::parse(bytes).and_then(|record| match record {
            Record::History(history) => self.history(history, position, recorder),
            Record::Summary(summary) => self.summary(summary, recorder),
            Record::Stats(stats) => self.stats(stats, position, recorder),
            Record::Config(config) => self.config(config, recorder),
            Record::Run(bytes) => {
                let run = record::run(bytes)?;
                self.time_unix_nanos = run.start_unix_nanos.unwrap_or(self.time_unix_nanos);
                about::run(bytes, self.time_unix_nanos, recorder)?;
                self.config(run.config, recorder)
            }
            Record::Environment(bytes) => about::environment(bytes, self.time_unix_nanos, recorder),
            Record::Alert(bytes) => about::alert(bytes, self.time_unix_nanos, recorder),
            Record::Output => {
                recorder.skip_value(CONSOLE);
                Ok(())
            }
            Record::Bookkeeping => {
                recorder.skip_value(BOOKKEEPING);
                Ok(())
            }
        });
        match read {
            Ok(()) => recorder.end_of_record(),
            Err(error) => recorder.report(SkipReason::MalformedRecord, position, || error.to_string()),
        }
    }

    fn history(
        &mut self,
        history: &[u8],
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), WireError> {
        let items = item::all(history)?;
        items
            .iter()
            .for_each(|item| self.history.detect_framework(&item.key));
        let (mut logged, mut types) = (Vec::with_capacity(items.len()), Vec::new());
        let mut counted = None;
        for item in &items {
            let mut beyond_limit = None;
            let key = match self.keys.intern(&item.key, Key::new) {
                Some(index) => self.keys.at(index),
                None => beyond_limit.insert(Key::new(&item.key())),
            };
            match key.role {
                Role::Time => self.take_time(item),
                Role::Count => counted = item.number(),
                Role::Clock => {}
                Role::Type => types.push(item),
                Role::Logged => {
                    let tag = *key.tag.get_or_insert_with(|| self.history.intern(&item.key));
                    logged.push((tag, item));
                }
            }
        }
        recorder.skip_values(CLOCK, (items.len() - logged.len() - types.len()) as u64);
        let counted = counted.or_else(|| record::step_of(history));
        // The step that a trainer logs takes precedence over wandb's count of calls.
        let own = logged.iter().find(|(index, _)| self.history.is_step(*index));
        let step = own.and_then(|(_, item)| item.number()).or(counted);
        let at = RecordMeta {
            time_unix_nanos: self.time_unix_nanos,
            step: step.map(|step| step as i64),
            position,
        };
        for type_item in types {
            self.reassemble(type_item, &mut logged, at, recorder);
        }
        for (index, item) in logged {
            self.logged(index, item, at, recorder);
        }
        self.history.end_of_step(at, recorder);
        Ok(())
    }

    fn take_time(&mut self, item: &Item<'_>) {
        if let Some(time) = item.number().filter(|time| *time > 0.0) {
            self.time_unix_nanos = UnixNanos((time * 1e9) as u64);
        }
    }

    /// Reassembles a flattened value from its type and its parts, and removes the parts from `logged`.
    fn reassemble(
        &mut self,
        type_item: &Item<'_>,
        logged: &mut Vec<(TagIndex, &Item<'_>)>,
        at: RecordMeta,
        recorder: &mut Recorder<'_>,
    ) {
        let prefix = &type_item.key[..type_item.key.len() - TYPE.len()];
        let parsed = |item: &Item<'_>| serde_json::from_str(item.json()).unwrap_or_default();
        let mut parts = serde_json::Map::new();
        parts.insert(TYPE.to_owned(), parsed(type_item));
        logged.retain(|(_, item)| match item.key.strip_prefix(prefix) {
            Some(part) => {
                parts.insert(String::from_utf8_lossy(part).into_owned(), parsed(item));
                false
            }
            None => true,
        });
        let key = String::from_utf8_lossy(&prefix[..prefix.len() - 1]).into_owned();
        let json = serde_json::Value::Object(parts).to_string();
        let index = self.history.intern(key.as_bytes());
        self.logged(index, &Item::new(&key, json.as_bytes()), at, recorder);
    }

    /// Records one logged value under the index of its key.
    fn logged(&mut self, index: TagIndex, item: &Item<'_>, at: RecordMeta, recorder: &mut Recorder<'_>) {
        match item.value() {
            ItemValue::Number(number) => self.history.record_at(index, at, number, recorder),
            ItemValue::Text(text) => self.history.record_text_at(index, at, &text, recorder),
            ItemValue::Distribution(distribution) => {
                let is_recorded = self
                    .history
                    .record_distribution_at(index, at, &distribution, recorder);
                if !is_recorded {
                    recorder.report(SkipReason::MalformedRecord, at.position, || {
                        format!(
                            "the bins of the histogram {} do not increase, or do not match the number of its values",
                            item.key()
                        )
                    });
                }
            }
            ItemValue::Media => recorder.skip_value(MEDIA),
            ItemValue::Null => recorder.skip_value(SkipReason::NotMeasured),
            ItemValue::Nested(parts) => {
                for (part, value) in parts {
                    let (key, json) = (format!("{}.{part}", item.key()), value.to_string());
                    let index = self.history.intern(key.as_bytes());
                    self.logged(index, &Item::new(&key, json.as_bytes()), at, recorder);
                }
            }
            ItemValue::Other => self.history.record_text_at(index, at, item.json(), recorder),
        }
    }

    /// Keeps the newest value of every key that no history has. [`end_of_summary`](Self::end_of_summary) records these values.
    fn summary(&mut self, summary: &[u8], recorder: &mut Recorder<'_>) -> Result<(), WireError> {
        let (mut clocks, mut repeated) = (0, 0);
        for item in item::all(summary)? {
            let keys = &self.keys;
            let index = self
                .summary
                .intern(&item.key, |key| SummaryEntry::new(key, keys.contains(key)));
            let Some(index) = index else {
                recorder.skip_value(SkipReason::TooManyNames);
                continue;
            };
            match self.summary.at(index) {
                SummaryEntry::Clock => clocks += 1,
                SummaryEntry::InHistory => repeated += 1,
                SummaryEntry::SummaryOnly(last) => {
                    repeated += u64::from(last.is_some());
                    let last = last.get_or_insert_default();
                    last.clear();
                    last.extend_from_slice(item.json().as_bytes());
                }
            }
        }
        recorder.skip_values(CLOCK, clocks);
        recorder.skip_values(SUMMARY, repeated);
        Ok(())
    }

    /// Records the summary values of keys that no history had.
    pub(super) fn end_of_summary(&mut self, recorder: &mut Recorder<'_>) {
        let at = RecordMeta {
            time_unix_nanos: self.time_unix_nanos,
            step: None,
            position: SourcePosition::default(),
        };
        let mut alone: Vec<(String, Vec<u8>)> = self
            .summary
            .take()
            .filter_map(|(key, value)| match value {
                SummaryEntry::SummaryOnly(json) => Some((key, json?)),
                _ => None,
            })
            .collect();
        alone.sort();
        alone
            .iter()
            .for_each(|(key, _)| self.history.detect_framework(key.as_bytes()));
        for (key, json) in &alone {
            if self.keys.contains(key) {
                recorder.skip_value(SUMMARY);
            } else {
                let item = Item::new(key, json);
                let index = self.history.intern(&item.key);
                self.logged(index, &item, at, recorder);
            }
        }
    }

    fn stats(
        &mut self,
        stats: &[u8],
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), WireError> {
        let mut time_unix_nanos = self.time_unix_nanos;
        for field in Reader::new(stats) {
            let Field { number, value } = field?;
            if let (2, Wire::Bytes(time)) = (number, value) {
                time_unix_nanos = record::timestamp(time)?.unwrap_or(time_unix_nanos);
            }
        }
        let at = RecordMeta {
            time_unix_nanos,
            step: None,
            position,
        };
        for item in item::in_field(stats, 3)? {
            match item.value() {
                ItemValue::Number(number) => {
                    let index = self.machine.intern(&item.key);
                    self.machine.record_at(index, at, number, recorder);
                }
                _ => recorder.skip_value(SkipReason::NotMeasured),
            }
        }
        Ok(())
    }

    fn config(&mut self, config: &[u8], recorder: &mut Recorder<'_>) -> Result<(), WireError> {
        for item in item::all(config)? {
            let key = item.key();
            if CLOCK_KEYS.contains(&first_part(&key)) {
                recorder.skip_value(BOOKKEEPING);
                continue;
            }
            let value = item.value();
            let value = match (&value, item.json()) {
                (_, "true") => Out::Bool(true),
                (_, "false") => Out::Bool(false),
                (ItemValue::Number(number), json) => json.parse().map_or(Out::Double(*number), Out::Int),
                (ItemValue::Text(text), _) => Out::Text(text),
                (ItemValue::Null, _) => Out::Text(""),
                (_, json) => Out::Text(json),
            };
            record_option(&key, value, self.time_unix_nanos, recorder);
        }
        Ok(())
    }
}

/// The first part of a nested key.
fn first_part(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}
