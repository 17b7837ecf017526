//! The numbers of the fields of `Span` (proto/trace/v1/trace.proto), for whoever writes spans field by field.

/// The trace that the span belongs to: bytes.
pub const TRACE_ID: u32 = 1;
/// Its own id: bytes.
pub const SPAN_ID: u32 = 2;
/// The state of its trace: text.
pub const TRACE_STATE: u32 = 3;
/// The span that it is part of: bytes.
pub const PARENT_SPAN_ID: u32 = 4;
/// Its name: text.
pub const NAME: u32 = 5;
/// Its kind: an enum value.
pub const KIND: u32 = 6;
/// When it began: eight bytes.
pub const START: u32 = 7;
/// When it ended: eight bytes.
pub const END: u32 = 8;
/// What else is known of it: `KeyValue` messages.
pub const ATTRIBUTES: u32 = 9;
/// How many attributes were left out.
pub const DROPPED_ATTRIBUTES: u32 = 10;
/// What happened during it: `Event` messages.
pub const EVENTS: u32 = 11;
/// How many events were left out.
pub const DROPPED_EVENTS: u32 = 12;
/// The other spans that it has to do with: `Link` messages.
pub const LINKS: u32 = 13;
/// How many links were left out.
pub const DROPPED_LINKS: u32 = 14;
/// How it ended: a `Status` message.
pub const STATUS: u32 = 15;
/// Its flags: four bytes.
pub const FLAGS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Message, Span};

    #[test]
    fn the_numbers_are_those_that_spans_are_read_by() {
        let named = [
            (TRACE_ID, "traceId"),
            (SPAN_ID, "spanId"),
            (TRACE_STATE, "traceState"),
            (PARENT_SPAN_ID, "parentSpanId"),
            (NAME, "name"),
            (KIND, "kind"),
            (START, "startTimeUnixNano"),
            (END, "endTimeUnixNano"),
            (ATTRIBUTES, "attributes"),
            (DROPPED_ATTRIBUTES, "droppedAttributesCount"),
            (EVENTS, "events"),
            (DROPPED_EVENTS, "droppedEventsCount"),
            (LINKS, "links"),
            (DROPPED_LINKS, "droppedLinksCount"),
            (STATUS, "status"),
            (FLAGS, "flags"),
        ];
        let table = Span::descriptor();
        assert_eq!(table.fields.len(), named.len());
        for (number, name) in named {
            let field = table.by_number(number).map(|(_, field)| field.json_name);
            assert_eq!(field, Some(name));
        }
    }
}
