//! Counters whose values are not absolute: values that add up, and values in multiples of the unit.

use std::collections::HashMap;

use super::item::CounterReading;

/// The counters whose values are not those of their events, by track uuid.
#[derive(Debug, Default)]
pub(super) struct Counters(HashMap<u64, Counter>);

/// The meaning of the values of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale {
    /// The factor of the values.
    pub(super) multiplier: i64,
    /// Whether each value is added to the previous ones.
    pub(super) is_incremental: bool,
}

#[derive(Debug)]
struct Counter {
    scale: Scale,
    /// The sequence of the descriptor, which resets the sum when its state is cleared.
    sequence_id: u64,
    total: CounterReading,
}

impl Default for Scale {
    fn default() -> Self {
        Self {
            multiplier: 1,
            is_incremental: false,
        }
    }
}

impl Counters {
    /// Adds the descriptor of a counter. A sum continues if the counter is described again.
    pub(super) fn describe(&mut self, track_uuid: u64, sequence_id: u64, scale: Scale) {
        if scale == Scale::default() {
            self.0.remove(&track_uuid);
            return;
        }
        let counter = self.0.entry(track_uuid).or_insert(Counter {
            scale,
            sequence_id,
            total: CounterReading::Int(0),
        });
        (counter.scale, counter.sequence_id) = (scale, sequence_id);
    }

    /// Resets the sums of a sequence.
    pub(super) fn clear(&mut self, sequence_id: u64) {
        for counter in self.0.values_mut() {
            if counter.sequence_id == sequence_id {
                counter.total = CounterReading::Int(0);
            }
        }
    }

    /// Returns the absolute value of a counter from the value of its event.
    pub(super) fn absolute(&mut self, track_uuid: u64, value: CounterReading) -> CounterReading {
        let Some(counter) = self.0.get_mut(&track_uuid) else {
            return value;
        };
        let multiplier = counter.scale.multiplier;
        let value = if counter.scale.is_incremental {
            counter.total = sum(counter.total, value);
            counter.total
        } else {
            value
        };
        match value {
            CounterReading::Int(value) => CounterReading::Int(value.saturating_mul(multiplier)),
            CounterReading::Double(value) => CounterReading::Double(value * multiplier as f64),
        }
    }
}

fn sum(one: CounterReading, other: CounterReading) -> CounterReading {
    let double = |value| match value {
        CounterReading::Int(value) => value as f64,
        CounterReading::Double(value) => value,
    };
    match (one, other) {
        (CounterReading::Int(one), CounterReading::Int(other)) => {
            CounterReading::Int(one.saturating_add(other))
        }
        _ => CounterReading::Double(double(one) + double(other)),
    }
}
