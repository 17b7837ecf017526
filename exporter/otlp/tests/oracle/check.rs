//! Compares `check`, which skips most fields in a fast loop, with the plain walk: one field at a time, every message entered.

use proptest::{collection::vec, prelude::*, sample::Index};
use pulsetrain_otlp::{
    Signal, WireError,
    descriptor::{FieldKind, MessageDescriptor, Role},
    limits::{Counts, Exceeded, Limit, LimitError, Limits, check},
    view::{LogsData, Message, MetricsData, TracesData},
    wire::{Reader, WireValue},
};

use crate::{config, generate::Shape, messages, seeds};

struct PlainWalk<'a> {
    limits: &'a Limits,
    input: &'a [u8],
    counts: Counts,
}

fn check_plainly(signal: Signal, input: &[u8], limits: &Limits) -> Result<Counts, LimitError> {
    let counts = Counts::default();
    let mut walk = PlainWalk {
        limits,
        input,
        counts,
    };
    walk.message(top(signal), input, 1)?;
    Ok(walk.counts)
}

fn top(signal: Signal) -> &'static MessageDescriptor {
    match signal {
        Signal::Traces => TracesData::descriptor(),
        Signal::Metrics => MetricsData::descriptor(),
        Signal::Logs => LogsData::descriptor(),
    }
}

impl<'a> PlainWalk<'a> {
    fn message(
        &mut self,
        table: &'static MessageDescriptor,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<(), LimitError> {
        self.admit(depth as u64, Limit::Depth, self.limits.depth, bytes)?;
        self.counts.messages += 1;
        self.counts.attributes += u64::from(table.role == Role::Attribute);
        self.counts.items += u64::from(table.role == Role::Item);
        self.admit(self.counts.items, Limit::Items, self.limits.items, bytes)?;
        let mut attributes = 0;
        for field in Reader::new(bytes) {
            let field = field.map_err(|error| self.wire(error, bytes))?;
            let (WireValue::Bytes(value), Some((_, row))) = (field.value, table.by_number(field.number))
            else {
                continue;
            };
            let mut numbers = Reader::new(value);
            match row.kind {
                FieldKind::One(inner) | FieldKind::Many(inner) => {
                    attributes += u64::from(inner().role == Role::Attribute);
                    self.admit(attributes, Limit::Attributes, self.limits.attributes, value)?;
                    self.message(inner(), value, depth + 1)?;
                }
                FieldKind::PackedUint64 => {
                    while !numbers.is_at_end() {
                        numbers.varint().map_err(|error| self.wire(error, value))?;
                    }
                }
                FieldKind::PackedFixed64 | FieldKind::PackedDouble => {
                    while !numbers.is_at_end() {
                        numbers.fixed64().map_err(|error| self.wire(error, value))?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn admit(&self, count: u64, limit: Limit, allowed: usize, part: &[u8]) -> Result<(), LimitError> {
        if count <= allowed as u64 {
            return Ok(());
        }
        Err(LimitError::Exceeded {
            exceeded: Exceeded { limit, allowed },
            offset: self.offset(part),
        })
    }

    fn wire(&self, error: WireError, part: &[u8]) -> LimitError {
        LimitError::Wire(WireError {
            offset: error.offset + self.offset(part),
            ..error
        })
    }

    fn offset(&self, part: &[u8]) -> usize {
        part.as_ptr() as usize - self.input.as_ptr() as usize
    }
}

/// Limits that generated messages exceed about as often as not.
fn limits() -> impl Strategy<Value = Limits> {
    (1..20usize, 4..14usize, 0..4usize).prop_map(|(items, depth, attributes)| Limits {
        items,
        depth,
        attributes,
        ..Limits::default()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn check_agrees_with_the_plain_walk_on_valid_changed_and_truncated_messages(
        seed in seeds(),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
        cut in any::<Index>(),
        small in limits(),
    ) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            let mut changed = bytes.clone();
            for (place, byte) in changes.iter().filter(|_| !bytes.is_empty()) {
                changed[place.index(bytes.len())] = *byte;
            }
            let cut = &bytes[..cut.index(bytes.len() + 1)];
            for (message, limits) in [&bytes[..], &changed, cut]
                .into_iter()
                .flat_map(|message| [(message, Limits::default()), (message, small.clone())])
            {
                prop_assert_eq!(check(signal, message, &limits), check_plainly(signal, message, &limits));
            }
        }
    }
}
