//! Units: UCUM without prefixes, and `1` for ratios only.

use super::{Finding, metrics_with};
use crate::grammar::Instrument;
use crate::registry::Registry;
use crate::ucum;

/// A unit is UCUM, without prefixes.
pub(super) fn ucum(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        ucum::check(&metric.unit).err().map(|problem| problem.to_string())
    })
}

/// `1` is for ratios in 0..1: gauges with a numerator and a denominator in `annotations.pulsetrain.ratio`.
pub(super) fn ratio(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let ratio = metric.annotations.pulsetrain.ratio.is_some();
        let message = match (metric.unit.as_str(), ratio) {
            ("1", false) => {
                "is in `1` without `annotations.pulsetrain.ratio`; write `part / total`, or a unit like `{loss}`"
            }
            ("1", true) if metric.instrument != Instrument::Gauge => "is a ratio but no gauge",
            ("1", true) => return None,
            (_, true) => "is a ratio but its unit is not `1`",
            (_, false) => return None,
        };
        Some(message.to_owned())
    })
}
