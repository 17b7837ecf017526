//! Selects the points of a metric that are about the rank as a unit, and their series.

use pulsetrain_otlp::view::{KeyValue, Message, Repeated};
use pulsetrain_run::{SeriesKey, label};
use pulsetrain_semconv::attribute;

/// Returns the series of a point that covers the rank's complete step, or `None` for one about a part.
///
/// The measurement method is ignored. The sum counts of statistics, and the actor of the roles of RL.
pub(super) fn of_rank(metric: SeriesKey, attributes: Repeated<'_, KeyValue<'_>>) -> Option<SeriesKey> {
    let mut series = metric;
    let mut attributes = attributes.iter();
    while let Some(encoded) = attributes.next_bytes() {
        let encoded = encoded.ok()?;
        let entry = KeyValue::decode(encoded).ok()?;
        let value = entry.value.unwrap_or_default();
        let is = |attribute: &pulsetrain_semconv::Attribute| entry.key == attribute.name;
        let is_complete = is(&attribute::PERF_CLOCK)
            || (is(&attribute::PERF_STATISTIC) && label(value) == Some("sum"))
            || (is(&attribute::RL_ROLE) && label(value) == Some("actor"));
        if !is_complete {
            return None;
        }
        series = series.with_attribute(encoded);
    }
    Some(series)
}
