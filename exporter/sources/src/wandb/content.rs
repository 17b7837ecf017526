//! What becomes of a record and of the items in it.

use pulsetrain_otlp::{
    wire::{Field, Reader, Value as Wire, WireError},
    write::Value as Out,
};

use super::{
    WandbParser,
    item::{self, Item, Value},
    record::{self, Record},
};
use crate::{
    Place, Recorder, SkipReason,
    tags::{At, record_option},
};

/// The rule for the keys with which wandb numbers its own records.
const CLOCK: SkipReason = SkipReason::LeftOut("wandb_clock");
/// The rule for a summary that says again what a history said.
const SUMMARY: SkipReason = SkipReason::LeftOut("wandb_summary");
/// The rule for what the program printed, which may be private.
const CONSOLE: SkipReason = SkipReason::LeftOut("console_output");
/// The rule for records that are of wandb and not of the run.
const BOOKKEEPING: SkipReason = SkipReason::LeftOut("wandb_bookkeeping");
/// The rule for files beside the run.
const MEDIA: SkipReason = SkipReason::LeftOut("media");

/// The keys with which wandb numbers its own records.
const CLOCK_KEYS: [&str; 4] = ["_step", "_timestamp", "_runtime", "_wandb"];

impl WandbParser {
    /// Records everything that a record says.
    pub(super) fn record(&mut self, bytes: &[u8], place: Place, recorder: &mut Recorder<'_>) {
        let read = record::parse(bytes).and_then(|record| match record {
            Record::History(history) => self.history(history, place, recorder),
            Record::Summary(summary) => self.summary(summary, recorder),
            Record::Stats(stats) => self.stats(stats, place, recorder),
            Record::Config(config) => self.config(config, recorder),
            Record::Run(run) => {
                let run = record::run(run)?;
                self.time_unix_nanos = run.start_unix_nanos.unwrap_or(self.time_unix_nanos);
                self.config(run.config, recorder)
            }
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
            Err(error) => recorder.skip(SkipReason::MalformedRecord, place, || error.to_string()),
        }
    }

    fn history(
        &mut self,
        history: &[u8],
        place: Place,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), WireError> {
        let items = item::all(history)?;
        items.iter().for_each(|item| self.history.show(&item.key));
        let number = |item: &Item<'_>| item.json.parse::<f64>().ok();
        let of_key = |key: &str| items.iter().find(|item| item.key == key).and_then(number);
        if let Some(time) = of_key("_timestamp").filter(|time| *time > 0.0) {
            self.time_unix_nanos = (time * 1e9) as u64;
        }
        // A trainer that numbers its steps itself knows better than wandb, which counts calls.
        let own = items
            .iter()
            .find(|item| self.history.is_step(&item.key))
            .and_then(number);
        let at = At {
            time_unix_nanos: self.time_unix_nanos,
            step: own.or_else(|| of_key("_step")).map(|step| step as i64),
            place,
        };
        for item in &items {
            if CLOCK_KEYS.contains(&first_part(&item.key)) {
                recorder.skip_value(CLOCK);
                continue;
            }
            if self.seen.place(&item.key).is_none() {
                self.seen.add(&item.key, ());
            }
            self.logged(&item.key, item.json, at, recorder);
        }
        self.history.end_of_step(at, recorder);
        Ok(())
    }

    /// Records one value that the program logged.
    fn logged(&mut self, key: &str, json: &str, at: At, recorder: &mut Recorder<'_>) {
        match item::value(json) {
            Value::Number(number) => self.history.record(key, at, number, recorder),
            Value::Text(text) => self.history.record_text(key, at, &text, recorder),
            Value::Distribution(distribution) => {
                if !self.history.record_distribution(key, at, &distribution, recorder) {
                    recorder.skip(SkipReason::MalformedRecord, at.place, || {
                        format!(
                            "the bins of the histogram {key} do not grow, or are not as many as its values"
                        )
                    });
                }
            }
            Value::Media => recorder.skip_value(MEDIA),
            Value::Null => recorder.skip_value(SkipReason::NotMeasured),
            Value::Other => self.history.record_text(key, at, json, recorder),
        }
    }

    /// Keeps the newest value of every key; at the end those are recorded that no history had.
    fn summary(&mut self, summary: &[u8], recorder: &mut Recorder<'_>) -> Result<(), WireError> {
        for item in item::all(summary)? {
            if CLOCK_KEYS.contains(&first_part(&item.key)) {
                recorder.skip_value(CLOCK);
            } else if let Some(last) = self.summary.get_mut(item.key.as_ref()) {
                item.json.clone_into(last);
                recorder.skip_value(SUMMARY);
            } else {
                self.summary.insert(item.key.into_owned(), item.json.to_owned());
            }
        }
        Ok(())
    }

    /// Records the summary's values under keys that no history had.
    pub(super) fn end_of_summary(&mut self, recorder: &mut Recorder<'_>) {
        let at = At {
            time_unix_nanos: self.time_unix_nanos,
            step: None,
            place: Place::default(),
        };
        for (key, json) in std::mem::take(&mut self.summary) {
            if self.seen.contains(&key) {
                recorder.skip_value(SUMMARY);
            } else {
                self.logged(&key, &json, at, recorder);
            }
        }
    }

    fn stats(&mut self, stats: &[u8], place: Place, recorder: &mut Recorder<'_>) -> Result<(), WireError> {
        let mut time_unix_nanos = self.time_unix_nanos;
        for field in Reader::new(stats) {
            if let Field {
                number: 2,
                value: Wire::Bytes(time),
            } = field?
            {
                time_unix_nanos = record::timestamp(time)?.unwrap_or(time_unix_nanos);
            }
        }
        let at = At {
            time_unix_nanos,
            step: None,
            place,
        };
        for item in item::in_field(stats, 3)? {
            match item::value(item.json) {
                Value::Number(number) => self.machine.record(&item.key, at, number, recorder),
                _ => recorder.skip_value(SkipReason::NotMeasured),
            }
        }
        Ok(())
    }

    fn config(&mut self, config: &[u8], recorder: &mut Recorder<'_>) -> Result<(), WireError> {
        for item in item::all(config)? {
            if CLOCK_KEYS.contains(&first_part(&item.key)) {
                recorder.skip_value(BOOKKEEPING);
                continue;
            }
            let value = item::value(item.json);
            let value = match (&value, item.json) {
                (_, "true") => Out::Bool(true),
                (_, "false") => Out::Bool(false),
                (Value::Number(number), json) => json.parse().map_or(Out::Double(*number), Out::Int),
                (Value::Text(text), _) => Out::Text(text),
                (Value::Null, _) => Out::Text(""),
                (_, json) => Out::Text(json),
            };
            record_option(&item.key, value, self.time_unix_nanos, recorder);
        }
        Ok(())
    }
}

/// The first part of a nested key.
fn first_part(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}
