//! Sums up the points that a reading delivers, for the suggestion of a mapping.

use std::{collections::BTreeMap, fmt::Write};

use pulsetrain_otlp::{
    Signal,
    view::{AnyValue, KeyValue},
    walk::{self, PointKind, PointValue},
    write::Encoded,
};
use pulsetrain_semconv::{attribute, metric};

use super::suggestion::one_line;

/// The points of a reading by metric and by name of `train.custom`.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    names: BTreeMap<String, Points>,
    others: BTreeMap<&'static str, u64>,
}

/// The points of a metric.
#[derive(Clone, Copy, Debug)]
struct Points {
    count: u64,
    first: f64,
    last: f64,
    low: f64,
    high: f64,
    /// Whether the values are sums.
    is_sum: bool,
}

impl Delivered {
    /// Adds the points of a message.
    pub(super) fn add(&mut self, message: &Encoded) {
        match message.signal {
            Signal::Metrics => self.add_metrics(&message.bytes),
            Signal::Traces => *self.others.entry("spans").or_default() += u64::from(message.items),
            _ => *self.others.entry("events").or_default() += u64::from(message.items),
        }
    }

    fn add_metrics(&mut self, message: &[u8]) {
        let metrics = walk::metrics(message)
            .flatten()
            .flat_map(|resource| resource.items());
        for data in metrics.flatten() {
            let Ok(name) = data.name.to_str() else { continue };
            // The recorder wrote the message itself.
            let _ = data.each_point(|point| {
                let attributes = point.attributes();
                let custom = attributes.iter().flatten().find_map(custom_name);
                let name = match custom {
                    Some(custom) => format!("{name} {custom}"),
                    None => name.to_owned(),
                };
                let value = match point.value() {
                    Some(PointValue::Number(number)) => number.as_f64(),
                    Some(PointValue::Distribution(values)) => values.sum.unwrap_or(f64::NAN),
                    None => f64::NAN,
                };
                self.names
                    .entry(name)
                    .and_modify(|points| points.add(value))
                    .or_insert_with(|| Points::new(value, point.kind != PointKind::Gauge));
            });
        }
    }

    /// Returns whether the reading has steps of the run.
    pub(super) fn has_steps(&self) -> bool {
        self.names.contains_key(metric::TRAIN_GLOBAL_STEP.name)
    }

    /// Returns whether the reading has no points.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether the reading has at least the points of another one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        other.names.iter().all(|(name, points)| {
            let own = self.names.get(name);
            own.is_some_and(|own| {
                own.count > points.count || own.count == points.count && own.is_same(points)
            })
        })
    }

    /// Returns the number of names under `train.custom`.
    pub(super) fn customs(&self) -> usize {
        let prefix = format!("{} ", metric::TRAIN_CUSTOM.name);
        self.names.keys().filter(|name| name.starts_with(&prefix)).count()
    }

    /// Writes a comment for each metric.
    pub(super) fn write(&self, text: &mut String) {
        for (name, points) in &self.names {
            let Points {
                count,
                first,
                last,
                low,
                high,
                is_sum,
            } = points;
            let range = match name == metric::TRAIN_GLOBAL_STEP.name {
                true => format!("steps {low} to {high}"),
                false if *is_sum => format!("in sum {last}"),
                false if first.to_bits() == last.to_bits() => format!("{first}"),
                false => format!("{first} to {last}"),
            };
            let name = one_line(name);
            writeln!(text, "#   {name}: {count} points, {range}").unwrap_or_default();
        }
        for (name, count) in &self.others {
            writeln!(text, "#   {count} {name}").unwrap_or_default();
        }
    }
}

impl Points {
    fn new(value: f64, is_sum: bool) -> Self {
        Self {
            count: 1,
            first: value,
            last: value,
            low: value,
            high: value,
            is_sum,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        let ends = |points: &Self| [points.first.to_bits(), points.last.to_bits()];
        ends(self) == ends(other)
    }

    fn add(&mut self, value: f64) {
        self.count += 1;
        self.last = value;
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }
}

/// Returns the name of a point of `train.custom`.
fn custom_name(attribute: KeyValue<'_>) -> Option<String> {
    let is_name = attribute.key.as_bytes() == attribute::TRAIN_CUSTOM_NAME.name.as_bytes();
    match attribute.value {
        Some(AnyValue::String(name)) if is_name => Some(name.to_str().ok()?.to_owned()),
        _ => None,
    }
}
