//! Detects the format of an input by its decompressed head.

use std::path::Path;

use pulsetrain_formats::detect;
use pulsetrain_otlp::{frames::is_unframed, wire};

/// Suffixes of Nsight Systems' own reports, including the old one and that of an unfinished capture.
const REPORTS: [&str; 3] = [".nsys-rep", ".qdrep", ".qdstrm"];

/// Suffixes of Perfetto traces: Perfetto's own, Pulsetrain's, and Tunix's.
const PERFETTO: [&str; 4] = [".pftrace", ".perfetto-trace", ".perfetto", ".pb"];

/// The first bytes of a message that is compressed with zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Fields of Chrome JSON traces that can precede the events.
const CHROME_JSON: [&str; 8] = [
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "displayTimeUnit",
    "systemTraceEvents",
    "otherData",
    "stackFrames",
];

/// Returns whether an input is a Chrome JSON trace, as written by PyTorch's profiler: an object with events, or an array of
/// events. The metadata before the events can exceed the head, and arguments can precede the phase of an event.
pub(super) fn is_chrome_json(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    if let Some(inside) = text.strip_prefix(b"[") {
        let (names, _) = first_object(inside.trim_ascii_start());
        return has_any(&names, &["ph"]);
    }
    let (names, is_complete) = first_object(text);
    has_any(&names, &["traceEvents"]) || (!is_complete && has_any(&names, &CHROME_JSON))
}

/// Returns whether one of the names is known.
fn has_any(names: &[&[u8]], known: &[&str]) -> bool {
    let is_known = |name: &&[u8]| known.iter().any(|known| known.as_bytes() == *name);
    names.iter().any(is_known)
}

/// Returns the names of the fields of the object at the start of a text that may be truncated, and whether the object is
/// complete. Other text has no names.
fn first_object(text: &[u8]) -> (Vec<&[u8]>, bool) {
    let mut names = Vec::new();
    if text.first() != Some(&b'{') {
        return (names, false);
    }
    let (mut place, mut depth, mut is_name) = (0_usize, 0_u32, false);
    while let Some(byte) = text.get(place) {
        match byte {
            b'"' => {
                let Some(end) = end_of_string(text, place) else {
                    break;
                };
                if is_name && depth == 1 {
                    names.push(&text[place + 1..end]);
                }
                (is_name, place) = (false, end);
            }
            b'{' | b'[' => {
                depth += 1;
                is_name = depth == 1 && *byte == b'{';
            }
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' => return (names, true),
            b',' => is_name = depth == 1,
            _ => {}
        }
        place += 1;
    }
    (names, false)
}

/// Returns the place of the quote that ends the string which begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> Option<usize> {
    let mut is_escaped = false;
    let rest = text.iter().enumerate().skip(start + 1);
    for (place, byte) in rest {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(place),
            _ => {}
        }
    }
    None
}

/// Returns whether an input is an array of Zipkin spans or of their traces, or begins with a span. A span of OTLP has no `id`,
/// and is never in an array alone.
pub(super) fn is_zipkin(head: &[u8]) -> bool {
    let is_in_object = |byte: &u8| !byte.is_ascii_whitespace() && !b"[],".contains(byte);
    let begin = head.iter().position(is_in_object).unwrap_or(head.len());
    let (before, object) = head.split_at(begin);
    let (names, _) = first_object(object);
    has_any(&names, &["traceId"]) && (before.contains(&b'[') || has_any(&names, &["id"]))
}

/// Returns a notice with the right command if an input is a training log instead of OTLP.
pub(super) fn log_notice(path: &Path, head: &[u8]) -> Option<String> {
    let path = path.display();
    let (format, _) = detect(&path.to_string(), head).ok()?;
    Some(format!(
        "this is a log ({}); read it with `pulsetrain import {path} --to FILE.pftrace`",
        format.name
    ))
}

/// Returns a notice with the right command for a report of Nsight Systems, whose format is not published.
pub(super) fn report_notice(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_report = REPORTS.iter().any(|ending| name.ends_with(ending));
    let path = path.display();
    is_report.then(|| {
        format!("this is a report of Nsight Systems; run `nsys export --type sqlite {path}` and convert the .sqlite file")
    })
}

/// Returns whether an input is a Perfetto trace: because it begins with a packet, or by its name if nothing else is known.
///
/// OTLP/JSON and length-delimited messages do not begin like that, and a protobuf message without a length prefix is
/// recognised first.
pub(super) fn is_perfetto(path: &Path, head: &[u8]) -> bool {
    if is_unframed(head) || is_framed(head) || matches!(head.first(), Some(b'{' | b'[')) {
        return false;
    }
    has_suffix(path, &PERFETTO)
        || match head {
            [b'\n', b'{', ..] => false,
            // The length of the first packet, or white space in front of JSON.
            [b'\n', length, rest @ ..] if length.is_ascii_whitespace() => {
                let packet = rest.get(..usize::from(*length));
                packet.is_some_and(|packet| wire::Reader::new(packet).all(|field| field.is_ok()))
            }
            [b'\n', _, ..] => true,
            _ => false,
        }
}

/// Returns whether the name of a file has one of the suffixes, with or without that of a compression, in either case.
pub fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    suffixes.iter().any(|suffix| name.ends_with(suffix))
}

/// Returns whether an input begins with length-delimited messages. The first one can be empty or compressed with zstd.
/// The first byte of a Perfetto trace would be that of a length above the limit.
fn is_framed(mut head: &[u8]) -> bool {
    if head.first() == Some(&b'\n') {
        return false;
    }
    while let Some((length, rest)) = head.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        if length > 0 {
            let message = &rest[..rest.len().min(length)];
            return is_unframed(message) || message.starts_with(&ZSTD);
        }
        head = rest;
    }
    false
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::{frames::append_binary, json, limits::Limits};

    use super::*;

    #[test]
    fn framed_otlp_and_json_are_no_perfetto_traces_under_any_name() {
        let path = Path::new("run.pftrace");
        let text = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"}]}]}]}"#;
        let (mut message, mut framed) = (Vec::new(), Vec::new());
        json::decode(text, &Limits::default(), &mut message).expect("it is OTLP");
        append_binary(b"", &mut framed).expect("a message has a length");
        append_binary(&message, &mut framed).expect("a message has a length");
        for head in [&framed[..], &framed[4..], &message[..], &text[..], &b"[{"[..]] {
            assert!(!is_perfetto(path, head), "{head:?}");
        }
        // The length of the first packet is that of a brace, and a damaged trace is known by its name.
        assert!(is_perfetto(path, b"\n{"));
        assert!(is_perfetto(path, &[0xff; 8]) && is_perfetto(path, b"") && is_perfetto(path, &[0; 8]));
    }

    #[test]
    fn packet_with_a_whitespace_length_byte_is_distinguished_from_json() {
        let is_perfetto = |head: &[u8]| is_perfetto(Path::new("-"), head);
        let packet = [0x50, 1, 0xe2, 0x03, 5, 0x08, 0, 0x98, 0x01, 1];
        assert!(is_perfetto(&[b"\n\n".as_slice(), &packet].concat()));
        assert!(is_perfetto(b"\n\x02\x50\x01"));
        let json = "{\"resourceSpans\": []}";
        for blank in [
            "\n", "\n\n", "\n\n\n", "\n \n", "\r\n", "\n\t", "\n  \n", "\n    ",
        ] {
            assert!(!is_perfetto(format!("{blank}{json}").as_bytes()), "{blank:?}");
        }
    }

    #[test]
    fn chrome_json_is_detected_by_its_first_fields() {
        let long = "y".repeat(100);
        for (head, expected) in [
            (r#"{"traceEvents": ["#.to_owned(), true),
            (
                format!(r#"{{"schemaVersion": 1, "deviceProperties": [{{"name": "{long}""#),
                true,
            ),
            (
                format!(r#"{{"metadata": {{"displayTimeUnit": 1}}, "x": "{long}""#),
                false,
            ),
            (r#"{"displayTimeUnit": "ms", "step": 1}"#.to_owned(), false),
            (
                r#"{"displayTimeUnit": "ms", "step": 1}{"traceEvents": []}"#.to_owned(),
                false,
            ),
            (
                r#"[{"args": {"traceId": "a", "x": {"y": "\"}"}}, "ph": "X""#.to_owned(),
                true,
            ),
            (
                r#" [ {"args": {"name": "p"}, "name": "process_name", "ph": "M"}]"#.to_owned(),
                true,
            ),
            (
                r#"[{"traceId": "a", "tags": {"ph": "X"}}, {"ph": "X"}]"#.to_owned(),
                false,
            ),
            (r#"[{"traceId": "ph", "id": "ph"}]"#.to_owned(), false),
            (r#"{"resourceSpans": [{"traceEvents": 1}]}"#.to_owned(), false),
            (r#"[["a", "ph"]]"#.to_owned(), false),
            ("[]".to_owned(), false),
            ("]}".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(is_chrome_json(head.as_bytes()), expected, "{head}");
        }
    }

    #[test]
    fn zipkin_is_detected_by_the_fields_of_its_first_span() {
        for (head, expected) in [
            (r#"[{"traceId": "a", "id": "b"}]"#, true),
            (r#"[[], [{"id": "b", "traceId": "a"}]]"#, true),
            (r#"[{"traceId": "zz"}, {"#, true),
            (r#"{"id": "b", "traceId": "a", "tags": {"#, true),
            (r#"{"traceId": "a", "spanId": "b"}"#, false),
            (
                r#"[{"resourceLogs": [{"scopeLogs": [{"logRecords": [{"traceId": "a"}]}]}]}]"#,
                false,
            ),
            (r#"[{"resource_spans": [{"traceId": "a", "id": "b"}]}]"#, false),
            ("[]", false),
        ] {
            assert_eq!(is_zipkin(head.as_bytes()), expected, "{head}");
        }
    }
}
