//! The numbers of the fields of `Span` (proto/trace/v1/trace.proto), for code that writes spans field by field.

/// The trace id: bytes.
pub const TRACE_ID: u32 = 1;
/// The span id: bytes.
pub const SPAN_ID: u32 = 2;
/// The trace state: text.
pub const TRACE_STATE: u32 = 3;
/// The id of the parent span: bytes.
pub const PARENT_SPAN_ID: u32 = 4;
/// The name: text.
pub const NAME: u32 = 5;
/// The kind: an enum value.
pub const KIND: u32 = 6;
/// The start time: eight bytes.
pub const START: u32 = 7;
/// The end time: eight bytes.
pub const END: u32 = 8;
/// The attributes: `KeyValue` messages.
pub const ATTRIBUTES: u32 = 9;
/// The number of dropped attributes.
pub const DROPPED_ATTRIBUTES: u32 = 10;
/// The events: `Event` messages.
pub const EVENTS: u32 = 11;
/// The number of dropped events.
pub const DROPPED_EVENTS: u32 = 12;
/// The links to other spans: `Link` messages.
pub const LINKS: u32 = 13;
/// The number of dropped links.
pub const DROPPED_LINKS: u32 = 14;
/// The status: a `Status` message.
pub const STATUS: u32 = 15;
/// The flags: four bytes.
pub const FLAGS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Message, Span};

    #[test]
    fn span_field_numbers_match_the_descriptor() {
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
