//! The role of each field of a record, given its other fields.

use pulsetrain_mapping::{Field, FieldValue, Mapping};
use pulsetrain_semconv::{Instrument, Metric, metric};

use super::record_keys::RecordKeys;

/// The role of one field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldRole {
    /// The time, the step, or an attribute of other fields.
    Header,
    /// A field without a row.
    Unknown,
    /// A second value of a key, as in the line `loss = 2.5 (* 1 = 2.6 loss)`. The key stays mapped.
    Repeated,
    /// A field whose row does not fit: all values of the key are kept under its own name from now on.
    Unmapped,
    /// A field that its row applies to.
    Mapped,
}

/// The fields of a record that the roles of the others depend on.
#[derive(Debug)]
pub(super) struct RecordHeader {
    pub(super) time: Option<usize>,
    pub(super) step: Option<usize>,
    /// Whether the mapping names the key of the time, which may then have a row too.
    has_time_key: bool,
    is_loose: bool,
    /// The metrics of fields whose keys are the names of their metrics.
    named: Vec<u16>,
    has_data_time: bool,
    has_forward_time: bool,
}

impl RecordHeader {
    pub(super) fn new(
        (time, step): (Option<usize>, Option<usize>),
        count: usize,
        keys: &mut RecordKeys,
        mapping: &Mapping,
    ) -> Self {
        let is_loose = mapping.is_loose();
        Self {
            time,
            step,
            has_time_key: mapping.time().is_some(),
            is_loose,
            named: if is_loose {
                keys.named_metrics(count)
            } else {
                Vec::new()
            },
            has_data_time: is_loose && keys.has_metric(count, &metric::PERF_DATA_TIME),
            has_forward_time: is_loose && keys.has_metric(count, &metric::PERF_FORWARD_TIME),
        }
    }

    /// Returns the role of a field. `recorded` has the metrics so far whose attributes do not change, and their fields.
    pub(super) fn role(
        &self,
        (number, (key, value)): (usize, &Field<'_>),
        keys: &mut RecordKeys,
        recorded: &[(u16, usize)],
    ) -> FieldRole {
        // The time of the record is not a value, even if its key can be that of a duration.
        if self.time == Some(number) && !self.has_time_key {
            return FieldRole::Header;
        }
        let known = keys.info_mut(number);
        let is_attribute = known.is_attribute;
        let (is_named, is_unmapped) = (known.is_named, known.is_unmapped);
        let (is_time, is_iter_time) = (known.is_time, known.is_iter_time);
        let Some(resolved) = &known.state.resolved else {
            let mut headers = [self.time, self.step].into_iter();
            let is_kind = known.is_kind && matches!(value, FieldValue::Text(_));
            let is_header = is_kind
                || headers.any(|field| keys.are_same(number, field))
                || is_attribute && keys.is_attribute_of_record(key, value);
            return if is_header {
                FieldRole::Header
            } else {
                FieldRole::Unknown
            };
        };
        let is_plain = resolved.is_plain();
        let Some(metric) = resolved.mapping.target.metric().filter(|metric| {
            is_plain || metric.instrument == Instrument::Gauge && resolved.mapping.attributes_from.is_empty()
        }) else {
            return FieldRole::Mapped;
        };
        let mut of_metric = recorded.iter().filter(|(ordinal, _)| *ordinal == metric.ordinal);
        let first = of_metric.find(|(_, field)| keys.have_same_attributes(number, *field));
        let first = first.map(|(_, field)| *field);
        if keys.are_same(number, first) {
            return FieldRole::Repeated;
        }
        // If two keys of a record have the same metric by loose rows, it is recorded from the one with its name, as `loss` for
        // `train.loss`, or else from the first one.
        let is_second = first.is_some() || !is_named && self.named.contains(&metric.ordinal);
        // ESPnet prints the time of the data loader as `iter_time`, next to the time of the forward pass.
        let is_of_loader = is_iter_time && self.has_forward_time && !self.has_data_time;
        let is_unclear = is_of_loader || is_time && self.is_unclear(metric, value);
        // Two values of a gauge at one time would overwrite each other.
        let is_overwritten = first.is_some() && metric.instrument == Instrument::Gauge;
        match self.is_loose && is_plain && (is_unclear || is_unmapped || is_second) || is_overwritten {
            true => FieldRole::Unmapped,
            false => FieldRole::Mapped,
        }
    }

    /// Returns whether a number under `time` may be a time since the start instead of the duration of a step. Loaders of data
    /// print durations. Seconds in a record without a step can be those of an epoch.
    fn is_unclear(&self, metric: &Metric, value: &FieldValue<'_>) -> bool {
        let is_of_step = match value {
            FieldValue::Number(_) => false,
            FieldValue::Text(text) => self.step.is_some() || text.ends_with("ms"),
        };
        metric.ordinal == metric::TRAIN_STEP_DURATION.ordinal && !self.has_data_time && !is_of_step
    }
}
