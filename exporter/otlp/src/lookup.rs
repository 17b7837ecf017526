//! Finds fields in a message's table, looking first where the next field usually is.
//!
//! Writers send the fields of a message in one order and repeat lists in a row, so that the last field or the one behind it
//! is nearly always the one that comes.

use crate::{
    Signal,
    descriptor::{FieldDescriptor, MessageDescriptor},
    view::{LogsData, Message, MetricsData, TracesData},
};

/// The table of a signal's outermost message.
pub(crate) fn top(signal: Signal) -> &'static MessageDescriptor {
    match signal {
        Signal::Traces => TracesData::descriptor(),
        Signal::Metrics => MetricsData::descriptor(),
        Signal::Logs => LogsData::descriptor(),
    }
}

/// The place of the field that a tag is of; `None` where the number is unknown or has another wire type.
#[inline]
pub(crate) fn by_tag(table: &'static MessageDescriptor, tag: u32, last: usize) -> Option<usize> {
    find(table, last, |field| has_tag(field, tag))
}

/// The place of the field with a name in OTLP/JSON.
#[inline]
pub(crate) fn by_name(table: &'static MessageDescriptor, name: &[u8], last: usize) -> Option<usize> {
    find(table, last, |field| field.json_name.as_bytes() == name)
}

/// Whether a field may be sent with a tag: with its own wire type, or as one number of a list that was not packed.
#[inline]
pub(crate) fn has_tag(field: &FieldDescriptor, tag: u32) -> bool {
    let wire_type = tag & 7;
    field.number == tag >> 3
        && (field.kind.wire_type() == wire_type || field.kind.unpacked_wire_type() == Some(wire_type))
}

#[inline]
fn find(
    table: &'static MessageDescriptor,
    last: usize,
    wanted: impl Fn(&FieldDescriptor) -> bool,
) -> Option<usize> {
    let likely = table.fields.get(last..).unwrap_or_default();
    if let Some(ahead) = likely.iter().take(2).position(&wanted) {
        return Some(last + ahead);
    }
    table.fields.iter().position(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_whatever_came_before_it() {
        let table = crate::view::Span::descriptor();
        for last in [0, 3, table.fields.len() - 1, 99] {
            for (index, field) in table.fields.iter().enumerate() {
                let tag = field.number << 3 | field.kind.wire_type();
                assert_eq!(by_tag(table, tag, last), Some(index));
                assert_eq!(by_name(table, field.json_name.as_bytes(), last), Some(index));
            }
        }
    }

    #[test]
    fn an_unpacked_number_belongs_to_its_list_and_another_wire_type_to_nothing() {
        let table = crate::view::HistogramPoint::descriptor();
        let (bounds, _) = table.by_number(7).unwrap();
        assert_eq!(by_tag(table, 7 << 3 | 1, 0), Some(bounds));
        assert_eq!(by_tag(table, 7 << 3, 0), None);
    }
}
