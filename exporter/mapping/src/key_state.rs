//! The state of one key of a log.

use std::{borrow::Cow, collections::HashMap};

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue},
};
use pulsetrain_record::{PreparedSeries, Recorder, SkipReason, SourcePosition, key_cache::MAX_NAMES};
use pulsetrain_semconv::{self as semconv, Instrument, Metric, Number};

use crate::{MappingTarget, SpanAttributes, field_mapping::ResolvedMapping, scalar_mapper::record_option};

/// Integers below it are exact as a double.
const MAX_INTEGER: f64 = 9e15;

/// A key with its row, its series and the last value of its total.
#[derive(Debug, Default)]
pub struct KeyState {
    /// The row, or `None` if no mapping has the key.
    pub resolved: Option<ResolvedMapping>,
    /// The series of the row, if its attributes do not change.
    series: Option<PreparedSeries>,
    /// The series of numbers that are kept as `train.custom` although a row may match the key.
    kept: Option<PreparedSeries>,
    /// The span attributes that also get the value.
    on_spans: [Option<&'static semconv::Attribute>; 2],
    /// The last value of a cumulative total.
    last_total: f64,
    /// The last values by the attributes of the record, if these change.
    totals: HashMap<String, f64>,
    /// The last number of an option, which is recorded again only if it changes.
    last_option: Option<f64>,
    is_reported: bool,
}

/// The result of recording a number.
#[derive(Clone, Copy, Debug)]
pub enum Recorded {
    /// A point of the metric with this value, in the unit of the metric.
    Point(&'static Metric, f64),
    /// A point of `train.custom`, an option, a number that is not measured, or nothing, depending on the row.
    Done,
    /// Nothing: the value is not valid for the metric.
    Unfit,
}

impl KeyState {
    /// Returns the state of a key that was resolved.
    pub fn new(resolved: Option<ResolvedMapping>) -> Self {
        let mut state = Self::default();
        state.resolve(resolved);
        state
    }

    /// Replaces the row of the key; what was reported and the last total are kept.
    pub(crate) fn resolve(&mut self, resolved: Option<ResolvedMapping>) {
        let on_spans = resolved.as_ref().map(ResolvedMapping::span_attributes);
        self.on_spans = on_spans.unwrap_or_default();
        self.resolved = resolved;
        self.series = None;
        self.kept = None;
    }

    /// Returns the last value of a cumulative total.
    #[cfg(test)]
    pub(crate) fn last_total(&self) -> f64 {
        self.last_total
    }

    /// Returns the metric of the row, if it has one.
    pub fn metric(&self) -> Option<&'static Metric> {
        self.resolved.as_ref()?.mapping.target.metric()
    }

    /// Records a number in the unit of the metric. The points have `attributes` before those of the row; `is_scoped`
    /// guarantees that these are the same for every number of this key.
    pub fn record(
        &mut self,
        (time_unix_nanos, number): (UnixNanos, f64),
        (attributes, is_scoped): (&[Attribute<'_>], bool),
        key: &str,
        recorder: &mut Recorder<'_>,
    ) -> Recorded {
        let Some(resolved) = &self.resolved else {
            return Recorded::Unfit;
        };
        let metric = match &resolved.mapping.target {
            MappingTarget::Metric(metric) => *metric,
            MappingTarget::Custom(name) => {
                let name = name.as_deref().unwrap_or(key);
                record_custom(&mut self.series, (time_unix_nanos, number), name, recorder);
                return Recorded::Done;
            }
            MappingTarget::Option(name) => {
                if self.last_option.replace(number) != Some(number) {
                    record_option(name, option_value(number), time_unix_nanos, recorder);
                }
                return Recorded::Done;
            }
            MappingTarget::Dropped(reason) => {
                recorder.skip_value(SkipReason::Ignored(reason));
                return Recorded::Done;
            }
            MappingTarget::Step | MappingTarget::State(..) => return Recorded::Unfit,
        };
        if !is_valid_value(metric, number) {
            return Recorded::Unfit;
        }
        let is_fixed = attributes.is_empty() || is_scoped;
        let is_total = resolved.mapping.is_total;
        let value = if is_total {
            match self.growth(number, is_fixed, attributes) {
                Some(growth) => growth,
                None => {
                    recorder.skip_value(SkipReason::TooManySeries);
                    return Recorded::Done;
                }
            }
        } else {
            number
        };
        let Self {
            resolved: Some(resolved),
            series,
            ..
        } = self
        else {
            return Recorded::Unfit;
        };
        if is_fixed {
            let series = series.get_or_insert_with(|| resolved.series(metric, attributes));
            recorder.record_prepared(series, time_unix_nanos, value);
        } else {
            let all: Vec<Attribute<'_>> = attributes.iter().copied().chain(resolved.fixed()).collect();
            recorder.record(metric, time_unix_nanos, value, &all);
        }
        Recorded::Point(metric, number)
    }

    /// Records a text as the state of a state set; returns whether the row is a state set.
    pub fn record_state(
        &self,
        (time_unix_nanos, state): (UnixNanos, &str),
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let target = self.resolved.as_ref().map(|resolved| &resolved.mapping.target);
        let Some(MappingTarget::State(metric, attribute)) = target else {
            return false;
        };
        recorder.record_state(metric, attribute, time_unix_nanos, state, attributes);
        true
    }

    /// Records a text as an option of the configuration; returns whether the row is an option.
    pub fn record_option(
        &self,
        (time_unix_nanos, text): (UnixNanos, &str),
        recorder: &mut Recorder<'_>,
    ) -> bool {
        let target = self.resolved.as_ref().map(|resolved| &resolved.mapping.target);
        let Some(MappingTarget::Option(name)) = target else {
            return false;
        };
        record_option(name, AttributeValue::Text(text), time_unix_nanos, recorder);
        true
    }

    /// Returns the increase of a total, or `None` for a new series beyond the limit. A decrease is a reset of the total.
    fn growth(&mut self, total: f64, is_fixed: bool, attributes: &[Attribute<'_>]) -> Option<f64> {
        let before = if is_fixed {
            std::mem::replace(&mut self.last_total, total)
        } else {
            let series = format!("{attributes:?}");
            if self.totals.len() >= MAX_NAMES && !self.totals.contains_key(&series) {
                return None;
            }
            self.totals.insert(series, total).unwrap_or_default()
        };
        Some(if total < before { total } else { total - before })
    }

    /// Records a number under `name`, which is the same for every number of this key, and reports the name once. Returns whether
    /// it was recorded: the number of names is limited.
    pub fn keep<'n>(
        &mut self,
        (time_unix_nanos, number): (UnixNanos, f64),
        name: impl FnOnce() -> Cow<'n, str>,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        if let Some(series) = &mut self.kept {
            recorder.record_prepared(series, time_unix_nanos, number);
            return true;
        }
        let name = name();
        self.report_unknown(&name, position, recorder);
        record_custom(&mut self.kept, (time_unix_nanos, number), &name, recorder);
        self.kept.is_some()
    }

    /// Reports once that the registry has no metric for the key.
    pub fn report_unknown(&mut self, name: &str, position: SourcePosition, recorder: &mut Recorder<'_>) {
        if !std::mem::replace(&mut self.is_reported, true) {
            recorder.report(SkipReason::UnknownName, position, || {
                format!("{name} has no metric in the registry; its values are kept as train.custom")
            });
        }
    }

    /// Adds a value to those spans of its record that list the attribute.
    #[inline]
    pub fn add_to_spans(&self, value: f64, spans: &mut SpanAttributes) {
        spans.add(self.on_spans, value);
    }
}

/// Records a number of a series, which is looked up by its name only the first time.
fn record_custom(
    series: &mut Option<PreparedSeries>,
    (time_unix_nanos, number): (UnixNanos, f64),
    name: &str,
    recorder: &mut Recorder<'_>,
) {
    if series.is_none() {
        *series = recorder.custom_series(name);
    }
    match series {
        Some(series) => recorder.record_prepared(series, time_unix_nanos, number),
        None => recorder.skip_value(SkipReason::TooManyCustomNames),
    }
}

/// Returns a number as the value of an option: an integer if possible.
fn option_value(number: f64) -> AttributeValue<'static> {
    let integer = number as i64;
    match integer as f64 == number && number.abs() < MAX_INTEGER {
        true => AttributeValue::Int(integer),
        false => AttributeValue::Double(number),
    }
}

/// Returns whether the value is valid for points of the metric.
fn is_valid_value(metric: &Metric, value: f64) -> bool {
    match metric.instrument {
        Instrument::Counter | Instrument::Histogram => value.is_finite() && value >= 0.0,
        Instrument::Gauge | Instrument::UpDownCounter => value.is_finite() || metric.number == Number::Double,
    }
}
