//! Decodes the body of a response: the number of rejected items, or the error message.
//!
//! Both encodings of `Export…ServiceResponse` and `google.rpc.Status` are decoded, protobuf and JSON. The
//! text appears in terminal messages, so it is shortened and stripped of control characters.

use pulsetrain_otlp::{
    Signal,
    wire::{Reader, WireValue},
};
use pulsetrain_pipeline::{Delivery, Problem, printable};

use super::advice;

/// The maximum length of a receiver's text in messages, in characters.
const MAX_TEXT: usize = 300;

/// The warning about a success whose body is of another protocol. A web page is no success.
const NOT_OTLP: &str = "accepted, but the answer is not OTLP";

/// The encoding of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// Protobuf.
    Protobuf,
    /// JSON.
    Json,
    /// Other text, such as a proxy's page, or nothing.
    Text,
}

impl BodyFormat {
    /// Returns the encoding of a `Content-Type`.
    pub(super) fn from_content_type(content_type: &str) -> Self {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/x-protobuf" | "application/protobuf" => Self::Protobuf,
            "application/json" => Self::Json,
            _ => Self::Text,
        }
    }
}

/// Returns the delivery of a successful response to a batch of `items` items.
pub(super) fn success(format: BodyFormat, body: &[u8], signal: Signal, items: u32) -> Delivery {
    let partial = match format {
        _ if body.is_empty() => Some((0, String::new())),
        BodyFormat::Protobuf => partial_from_protobuf(body),
        BodyFormat::Json => partial_from_json(body, signal),
        BodyFormat::Text => None,
    };
    match partial {
        None => Delivery::Partial {
            rejected: 0,
            problem: Problem::new(NOT_OTLP).with_remedy(advice::NOT_A_RECEIVER),
        },
        Some((rejected, message)) if rejected <= 0 && message.is_empty() => Delivery::Delivered,
        Some((rejected, message)) => Delivery::Partial {
            rejected: u64::try_from(rejected).unwrap_or(0).min(u64::from(items)),
            problem: Problem::new(plain(&message)),
        },
    }
}

/// Returns the error text: `Status.message`, or the beginning of a text body.
pub(super) fn refusal(format: BodyFormat, body: &[u8]) -> Option<String> {
    let text = match format {
        BodyFormat::Protobuf => bytes_field(body, 2).ok()?.map(lossy)?,
        BodyFormat::Json => json(body)?.get("message")?.as_str()?.to_owned(),
        BodyFormat::Text if is_web_page(body) => return None,
        BodyFormat::Text => lossy(body),
    };
    let text = plain(&text);
    (!text.is_empty()).then_some(text)
}

/// Returns whether a body is HTML.
pub(crate) fn is_web_page(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"<")
}

/// Formats text as one short line without control characters. Repeated lines, such as Prometheus' one a
/// sample, appear once.
pub(crate) fn plain(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().take(MAX_TEXT) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let shown: String = lines.join(" ").chars().take(MAX_TEXT).collect();
    printable(&shown).trim().to_owned()
}

/// `partial_success = 1 { rejected_… = 1, error_message = 2 }`, the same for all three signals.
fn partial_from_protobuf(body: &[u8]) -> Option<(i64, String)> {
    let Some(partial) = bytes_field(body, 1).ok()? else {
        return Some((0, String::new()));
    };
    let mut rejected = 0;
    for field in Reader::new(partial) {
        if let (1, WireValue::Varint(value)) = (field.ok()?.number, field.ok()?.value) {
            rejected = value.cast_signed();
        }
    }
    Some((
        rejected,
        bytes_field(partial, 2).ok()?.map(lossy).unwrap_or_default(),
    ))
}

fn partial_from_json(body: &[u8], signal: Signal) -> Option<(i64, String)> {
    let answer = json(body)?;
    let Some(partial) = answer.get("partialSuccess") else {
        return Some((0, String::new()));
    };
    let rejected = match partial.get(rejected_key(signal)) {
        None | Some(serde_json::Value::Null) => 0,
        Some(serde_json::Value::String(text)) => text.parse().ok()?,
        Some(number) => number.as_i64()?,
    };
    let message = partial
        .get("errorMessage")
        .and_then(|text| text.as_str())
        .unwrap_or_default();
    Some((rejected, message.to_owned()))
}

fn rejected_key(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Metrics => "rejectedDataPoints",
        Signal::Logs => "rejectedLogRecords",
    }
}

fn json(body: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(body)
        .ok()
        .filter(serde_json::Value::is_object)
}

/// Returns the last value of a length-delimited field, as protobuf merges scalars.
fn bytes_field(message: &[u8], number: u32) -> Result<Option<&[u8]>, pulsetrain_otlp::WireError> {
    let mut found = None;
    for field in Reader::new(message) {
        let field = field?;
        if let WireValue::Bytes(bytes) = field.value
            && field.number == number
        {
            found = Some(bytes);
        }
    }
    Ok(found)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MAX_TEXT)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: u32 = 10;

    fn partial(rejected: u64, message: &str) -> Delivery {
        Delivery::Partial {
            rejected,
            problem: message.into(),
        }
    }

    #[test]
    fn empty_response_and_empty_partial_success_are_full_successes() {
        let json = [
            r#"{}"#,
            r#"{"partialSuccess":null}"#,
            r#"{"partialSuccess":{}}"#,
            r#"{"unknown":[1]}"#,
        ];
        for body in json {
            assert_eq!(
                success(BodyFormat::Json, body.as_bytes(), Signal::Logs, ITEMS),
                Delivery::Delivered,
                "{body}"
            );
        }
        for body in [&b""[..], b"\x0a\x00", b"\x0a\x02\x08\x00"] {
            assert_eq!(
                success(BodyFormat::Protobuf, body, Signal::Logs, ITEMS),
                Delivery::Delivered,
                "{body:?}"
            );
        }
    }

    #[test]
    fn rejected_items_are_counted_from_protobuf() {
        let body = b"\x0a\x07\x08\x03\x12\x03bad";
        assert_eq!(
            success(BodyFormat::Protobuf, body, Signal::Traces, ITEMS),
            partial(3, "bad")
        );
    }

    #[test]
    fn rejected_items_are_parsed_from_json_strings_and_numbers_for_every_signal() {
        for (signal, key) in [
            (Signal::Traces, "rejectedSpans"),
            (Signal::Metrics, "rejectedDataPoints"),
            (Signal::Logs, "rejectedLogRecords"),
        ] {
            for value in ["4", "\"4\""] {
                let body = format!(r#"{{"partialSuccess":{{"{key}":{value},"errorMessage":"no"}}}}"#);
                assert_eq!(
                    success(BodyFormat::Json, body.as_bytes(), signal, ITEMS),
                    partial(4, "no"),
                    "{body}"
                );
            }
        }
    }

    #[test]
    fn a_message_without_rejected_items_is_a_warning() {
        let body = br#"{"partialSuccess":{"errorMessage":"use the new endpoint"}}"#;
        assert_eq!(
            success(BodyFormat::Json, body, Signal::Logs, ITEMS),
            partial(0, "use the new endpoint")
        );
    }

    #[test]
    fn rejected_item_count_is_clamped_to_the_number_sent() {
        let more = br#"{"partialSuccess":{"rejectedSpans":"99"}}"#;
        assert_eq!(
            success(BodyFormat::Json, more, Signal::Traces, ITEMS),
            partial(10, "")
        );
        let less = br#"{"partialSuccess":{"rejectedSpans":-5,"errorMessage":"odd"}}"#;
        assert_eq!(
            success(BodyFormat::Json, less, Signal::Traces, ITEMS),
            partial(0, "odd")
        );
    }

    #[test]
    fn success_with_an_unreadable_body_is_delivered_with_a_warning() {
        for (format, body) in [
            (BodyFormat::Json, &b"{"[..]),
            (BodyFormat::Protobuf, b"\x0a\x7f"),
            (BodyFormat::Text, b"OK"),
        ] {
            let delivery = success(format, body, Signal::Traces, ITEMS);
            assert!(
                matches!(delivery, Delivery::Partial { rejected: 0, .. }),
                "{delivery:?}"
            );
        }
    }

    #[test]
    fn refusal_message_is_a_status_message_or_short_text_but_never_html() {
        assert_eq!(
            refusal(BodyFormat::Protobuf, b"\x08\x03\x12\x04nope"),
            Some("nope".to_owned())
        );
        assert_eq!(
            refusal(BodyFormat::Json, br#"{"code":3,"message":"nope"}"#),
            Some("nope".to_owned())
        );
        assert_eq!(
            refusal(BodyFormat::Text, b"no\x1b[31mpe\n"),
            Some("no [31mpe".to_owned())
        );
        assert_eq!(refusal(BodyFormat::Text, b"<html>"), None);
        assert_eq!(refusal(BodyFormat::Text, b""), None);
        assert_eq!(
            refusal(BodyFormat::Text, &[b'x'; 9000]).map(|text| text.len()),
            Some(MAX_TEXT)
        );
    }

    #[test]
    fn repeated_line_of_a_message_is_shown_once() {
        assert_eq!(
            plain("out of bounds\nout of bounds\nother\nout of bounds\n"),
            "out of bounds other"
        );
    }

    #[test]
    fn body_format_follows_the_content_type() {
        assert_eq!(
            BodyFormat::from_content_type("application/json; charset=utf-8"),
            BodyFormat::Json
        );
        assert_eq!(
            BodyFormat::from_content_type("application/x-protobuf"),
            BodyFormat::Protobuf
        );
        assert_eq!(BodyFormat::from_content_type("text/html"), BodyFormat::Text);
    }
}
