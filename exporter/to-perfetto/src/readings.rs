//! The drawable form of a point (a counter value, a state, or the point itself), and its encoding.

use pulsetrain_perfetto::CounterValue;

use super::tree_span::array;

const INT: u8 = 0;
const DOUBLE: u8 = 1;
const STATE: u8 = 2;
const POINT: u8 = 3;

/// The drawable form of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading<'a> {
    /// A value of a counter.
    Count {
        series: u32,
        value: CounterValue,
        carried: Option<EncodedPoint<'a>>,
    },
    /// A state of a row, by its label.
    State { track: u32, state: u32 },
    /// A point without a counter value.
    Point {
        resource: u32,
        carried: EncodedPoint<'a>,
    },
}

/// An encoded point, for a trace that is to be converted back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EncodedPoint<'a> {
    pub(super) metric: u32,
    /// The message.
    pub(super) bytes: &'a [u8],
}

impl<'a> Reading<'a> {
    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        let (kind, first, second, carried) = match *self {
            Self::Count {
                series,
                value: CounterValue::Int(value),
                carried,
            } => (INT, series, value as u64, carried),
            Self::Count {
                series,
                value: CounterValue::Double(value),
                carried,
            } => (DOUBLE, series, value.to_bits(), carried),
            Self::State { track, state } => (STATE, track, state.into(), None),
            Self::Point { resource, carried } => (POINT, resource, 0, Some(carried)),
        };
        out.push(kind);
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&second.to_le_bytes());
        if let Some(EncodedPoint { metric, bytes }) = carried {
            out.extend_from_slice(&metric.to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }

    pub(super) fn unpack(mut bytes: &'a [u8]) -> Option<Self> {
        let from = &mut bytes;
        let [kind] = array(from)?;
        let first = u32::from_le_bytes(array(from)?);
        let second = u64::from_le_bytes(array(from)?);
        let carried = array(from).map(|metric| EncodedPoint {
            metric: u32::from_le_bytes(metric),
            bytes: from,
        });
        let count = |value| Self::Count {
            series: first,
            value,
            carried,
        };
        Some(match kind {
            INT => count(CounterValue::Int(second as i64)),
            DOUBLE => count(CounterValue::Double(f64::from_bits(second))),
            STATE => Self::State {
                track: first,
                state: second as u32,
            },
            _ => Self::Point {
                resource: first,
                carried: carried?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_readings_round_trip() {
        let carried = EncodedPoint {
            metric: 3,
            bytes: b"point",
        };
        for reading in [
            Reading::Count {
                series: 7,
                value: CounterValue::Int(-1),
                carried: None,
            },
            Reading::Count {
                series: 7,
                value: CounterValue::Double(0.5),
                carried: Some(carried),
            },
            Reading::State { track: 1, state: 2 },
            Reading::Point { resource: 9, carried },
        ] {
            let mut bytes = Vec::new();
            reading.pack(&mut bytes);
            assert_eq!(Reading::unpack(&bytes), Some(reading));
        }
    }
}
