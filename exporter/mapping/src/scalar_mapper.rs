//! Records numbers and texts under tags, from files of any format.

use std::collections::HashSet;

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue, HistogramParts},
};
use pulsetrain_record::{
    Recorder, SkipReason, SourcePosition,
    key_cache::{KeyCache, MAX_NAMES},
};
use pulsetrain_semconv::{Metric, attribute, event, metric};

use crate::{
    Conversion, FieldTable, KeyState, MappingTarget, RecordMeta, Trainer,
    dictionary::{dictionary_row, has_metric},
    field_mapping::ResolvedMapping,
    key_state::Recorded,
    scalar_section::TextRole,
    tag_evidence::TagEvidence,
};

/// The index of a tag among those of its file, or `None` for a tag beyond the limit, whose values are skipped and counted. An
/// index is valid for as long as the file is read.
pub type TagIndex = Option<usize>;

/// The skip reason for numbers that repeat the step.
const STEP_AGAIN: &str = "step_again";

/// The tags of one file and their mapping.
#[derive(Debug, Default)]
pub struct ScalarMapper {
    /// The rows of tags that the writer of the file adds, independently of the trainer.
    own: Option<&'static FieldTable>,
    trainer: Option<&'static Trainer>,
    evidence: TagEvidence,
    tags: KeyCache<Tag>,
    /// The metrics, with the attributes of their points, that tags have by the dictionary: two tags never share a series.
    by_dictionary: HashSet<String>,
    highest_step: Option<i64>,
}

#[derive(Debug, Default)]
struct Tag {
    state: KeyState,
    /// The role of texts under the tag, if the trainer has one.
    text: Option<TextRole>,
    /// The time of the last recorded distribution.
    last_time_unix_nanos: UnixNanos,
    /// Whether its ratios are in percent, as a number above 1 shows.
    is_percent: bool,
}

/// The rows that tags are looked up in before the dictionary.
#[derive(Clone, Copy, Debug)]
struct TagRows {
    own: Option<&'static FieldTable>,
    trainer: Option<&'static Trainer>,
}

impl ScalarMapper {
    /// Creates a mapper of tags that the writer of the file adds.
    pub fn of_writer(own: &'static FieldTable) -> Self {
        Self {
            own: Some(own),
            ..Self::default()
        }
    }

    /// Creates a mapper of the tags of a known trainer.
    pub fn of_trainer(trainer: &'static Trainer) -> Self {
        Self {
            trainer: Some(trainer),
            ..Self::default()
        }
    }

    /// Returns the trainer that a tag has identified, if any.
    pub fn trainer(&self) -> Option<&'static Trainer> {
        self.trainer
    }

    /// Identifies the trainer by a tag; its own rows apply from then on. If the tags of a record have no order, call this with
    /// all of them first.
    pub fn detect_framework(&mut self, tag: &[u8]) {
        if self.trainer.is_none() && self.tags.index_of_bytes(tag).is_none() {
            self.trainer = self.evidence.observe(&String::from_utf8_lossy(tag));
            if self.trainer.is_some() {
                self.resolve_again();
            }
        }
    }

    /// Resolves every tag by the rows of the trainer that is now known. The indices of tags stay valid, since callers hold
    /// them.
    fn resolve_again(&mut self) {
        self.by_dictionary.clear();
        let rows = TagRows {
            own: self.own,
            trainer: self.trainer,
        };
        for (name, tag) in self.tags.iter_mut() {
            tag.resolve(name, rows, &mut self.by_dictionary);
        }
    }

    /// Returns whether a tag is known or within the limit `most`: for writers that are not trusted.
    pub fn admits(&self, tag: &str, most: usize) -> bool {
        self.tags.contains(tag) || self.tags.len() < most
    }

    /// Returns the index of a tag by its bytes. Invalid UTF-8 is replaced.
    #[inline]
    pub fn intern(&mut self, tag: &[u8]) -> TagIndex {
        self.tags
            .index_of_bytes(tag)
            .or_else(|| self.add(&String::from_utf8_lossy(tag)))
    }

    /// Returns whether the numbers under a tag are the step.
    pub fn is_step(&mut self, index: TagIndex) -> bool {
        let resolved = index.and_then(|index| self.tags.at(index).state.resolved.as_ref());
        resolved.is_some_and(|resolved| matches!(resolved.mapping.target, MappingTarget::Step))
    }

    /// Resets the highest step, for a run that restarted from `step`.
    pub fn restart_from(&mut self, step: i64) {
        self.highest_step = step.checked_sub(1);
    }

    /// Records a number under a tag; returns the metric and the value if it was recorded as a point of a metric.
    pub fn record(
        &mut self,
        tag: &str,
        meta: RecordMeta,
        value: f64,
        recorder: &mut Recorder<'_>,
    ) -> Option<(&'static Metric, f64)> {
        let index = self.index(tag);
        self.record_at(index, meta, value, recorder)
    }

    /// Records a number under the tag of an index, as [`record`](Self::record) does.
    pub fn record_at(
        &mut self,
        index: TagIndex,
        meta: RecordMeta,
        value: f64,
        recorder: &mut Recorder<'_>,
    ) -> Option<(&'static Metric, f64)> {
        let Some(index) = index else {
            skip_beyond_limit(meta.position, recorder);
            return None;
        };
        let (name, tag) = self.tags.key_and_value(index);
        let time = meta.time_unix_nanos;
        let Some(resolved) = &tag.state.resolved else {
            tag.state
                .keep((time, value), || name.into(), meta.position, recorder);
            self.record_step(meta, recorder);
            return None;
        };
        if matches!(resolved.mapping.target, MappingTarget::Step)
            && meta.step.is_some_and(|step| value == step as f64)
        {
            recorder.skip_value(SkipReason::Ignored(STEP_AGAIN));
            self.record_step(meta, recorder);
            return None;
        }
        if resolved.mapping.sentinel == Some(value) {
            recorder.skip_value(SkipReason::NotMeasured);
            self.record_step(meta, recorder);
            return None;
        }
        let is_dropped = matches!(resolved.mapping.target, MappingTarget::Dropped(_));
        let conversion = resolved.mapping.conversion.or(resolved.mapping.without_suffix);
        let conversion = conversion.unwrap_or(Conversion::None);
        let converted = conversion.in_series(value, &mut tag.is_percent).apply(value);
        let recorded = tag.state.record((time, converted), (&[], true), name, recorder);
        let point = match recorded {
            Recorded::Point(metric, value) => Some((metric, value)),
            Recorded::Done => None,
            // A value that is not valid for its metric is recorded under its name.
            Recorded::Unfit => {
                recorder.record_custom(time, name, value);
                None
            }
        };
        if !is_dropped {
            self.record_step(meta, recorder);
        }
        point
    }

    /// Records a text under a tag.
    pub fn record_text(&mut self, tag: &str, meta: RecordMeta, text: &str, recorder: &mut Recorder<'_>) {
        let index = self.index(tag);
        self.record_text_at(index, meta, text, recorder);
    }

    /// Records a text under the tag of an index.
    pub fn record_text_at(
        &mut self,
        index: TagIndex,
        meta: RecordMeta,
        text: &str,
        recorder: &mut Recorder<'_>,
    ) {
        let Some(index) = index else {
            return skip_beyond_limit(meta.position, recorder);
        };
        let (name, tag) = self.tags.key_and_value(index);
        let time = meta.time_unix_nanos;
        match &tag.text {
            Some(TextRole::Configuration) => {
                return recorder.record_event(
                    &event::RUN_CONFIG,
                    time,
                    Some(AttributeValue::Text(text)),
                    &[],
                );
            }
            Some(TextRole::Option(name)) => {
                return record_option(name, AttributeValue::Text(text), time, recorder);
            }
            None => {}
        }
        if tag.state.record_state((time, text), &[], recorder)
            || tag.state.record_option((time, text), recorder)
        {
            return;
        }
        let mut attributes: Vec<Attribute<'_>> =
            vec![(&attribute::TRAIN_RECORD_KIND, AttributeValue::Text(name))];
        attributes.extend(
            meta.step
                .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step))),
        );
        let body = Some(AttributeValue::Text(text));
        recorder.record_event(&event::TRAIN_CUSTOM_RECORD, time, body, &attributes);
    }

    /// Records a distribution of the values since the previous one.
    pub fn record_distribution_at(
        &mut self,
        index: TagIndex,
        meta: RecordMeta,
        (parts, bounds): (HistogramParts<'_>, &[f64]),
        recorder: &mut Recorder<'_>,
    ) {
        let Some(index) = index else {
            return skip_beyond_limit(meta.position, recorder);
        };
        let (name, tag) = self.tags.key_and_value(index);
        let time = meta.time_unix_nanos;
        let since = std::mem::replace(&mut tag.last_time_unix_nanos, time).min(time);
        recorder.record_custom_distribution(since, time, name, parts, bounds);
    }

    /// Records a step with its first number. Several writers of one file may have separate counts, so a lower step is not new.
    fn record_step(&mut self, meta: RecordMeta, recorder: &mut Recorder<'_>) {
        let Some(step) = meta.step else { return };
        if self.highest_step.is_none_or(|highest| step > highest) {
            self.highest_step = Some(step);
            recorder.record(&metric::TRAIN_GLOBAL_STEP, meta.time_unix_nanos, step as f64, &[]);
        }
    }

    #[inline]
    fn index(&mut self, tag: &str) -> TagIndex {
        match self.tags.index_of(tag) {
            Some(index) => Some(index),
            None => self.add(tag),
        }
    }

    fn add(&mut self, tag: &str) -> TagIndex {
        if self.tags.len() >= MAX_NAMES {
            return None;
        }
        self.detect_framework(tag.as_bytes());
        let mut new = Tag::default();
        let rows = TagRows {
            own: self.own,
            trainer: self.trainer,
        };
        new.resolve(tag, rows, &mut self.by_dictionary);
        Some(self.tags.add(tag, new))
    }
}

impl Tag {
    /// Resolves the tag by the rows of the writer and of the trainer, or else by the dictionary.
    fn resolve(&mut self, name: &str, rows: TagRows, by_dictionary: &mut HashSet<String>) {
        let section = rows.trainer.map(|trainer| trainer.mapping().scalars());
        self.text = section.and_then(|section| section.text_role(name));
        let tables = [rows.own, section.map(|section| section.table())];
        let resolved = tables.into_iter().flatten().find_map(|table| table.resolve(name));
        let resolved = resolved.or_else(|| rows.by_dictionary(name, by_dictionary));
        self.state.resolve(resolved);
    }
}

impl TagRows {
    /// Returns the row of the dictionary for a tag of training. The rows of a trainer that have a metric are complete for it, and
    /// a series is of the first tag that has it.
    fn by_dictionary(self, name: &str, used: &mut HashSet<String>) -> Option<ResolvedMapping> {
        if self.own.is_some() {
            return None;
        }
        let resolved = dictionary_row(name)?;
        let Some(metric) = resolved.mapping.target.metric() else {
            return Some(resolved);
        };
        let is_of_trainer = self.trainer.is_some_and(|trainer| has_metric(trainer, metric));
        let series = || format!("{} {:?}", metric.name, resolved.fixed().collect::<Vec<_>>());
        (!is_of_trainer && used.insert(series())).then_some(resolved)
    }
}

/// Records an option of the configuration.
pub fn record_option(
    name: &str,
    value: AttributeValue<'_>,
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) {
    let attributes = [
        (&attribute::RUN_OPTION_NAME, AttributeValue::Text(name)),
        (&attribute::RUN_OPTION_VALUE, value),
    ];
    recorder.record_event(&event::RUN_OPTION, time_unix_nanos, None, &attributes);
}

fn skip_beyond_limit(position: SourcePosition, recorder: &mut Recorder<'_>) {
    recorder.report(SkipReason::TooManyNames, position, || {
        format!("this input has more than {MAX_NAMES} names; values under further ones are left out: log fewer names")
    });
}

#[cfg(test)]
mod tests {
    use pulsetrain_record::{Counts, ParseReport, Run};

    use super::*;
    use crate::MappingFile;

    /// Records numbers under the key `x` by one row. Returns whether each of them is a point, and the report.
    fn recorded(row: &str, values: &[f64]) -> (Vec<bool>, Counts, ParseReport) {
        let mapping = MappingFile::parse(&format!("values: [{{key: x, {row}}}]")).unwrap();
        let table = mapping.build().unwrap().table().clone();
        let mut mapper = ScalarMapper::of_writer(Box::leak(Box::new(table)));
        let mut recorder = Recorder::new(Run::default(), |_| {});
        let meta = RecordMeta {
            time_unix_nanos: UnixNanos(1),
            ..RecordMeta::default()
        };
        let is_point = |value: &f64| mapper.record("x", meta, *value, &mut recorder).is_some();
        let points = values.iter().map(is_point).collect();
        let (counts, skipped) = recorder.finish();
        (points, counts, skipped)
    }

    #[test]
    fn an_option_is_recorded_again_only_if_it_changes() {
        let (_, counts, _) = recorded("option: temperature", &[2.0, 2.0, 1.5, 1.5, 2.0]);
        assert_eq!(counts.events, 3);
    }

    #[test]
    fn a_sentinel_under_a_tag_is_not_measured() {
        let (points, counts, skipped) = recorded("metric: train.loss, sentinel: -1", &[-1.0, 2.5]);
        assert_eq!((points, counts.points), (vec![false, true], 1));
        let skipped: Vec<_> = skipped.counts().collect();
        assert_eq!(skipped, [(SkipReason::NotMeasured, 1)]);
    }
}
