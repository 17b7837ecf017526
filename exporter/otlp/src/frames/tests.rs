use std::io::{self, Read, Write};

use flate2::{Compression, write::GzEncoder};

use super::*;
use crate::{Signal, json, limits::Limits};

const SPANS: &str =
    r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a","startTimeUnixNano":"1"}]}]}]}"#;
const LOGS: &str =
    r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1"},{"severityNumber":9}]}]}]}"#;
const GAUGE: &str = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"g","gauge":{"dataPoints":[{"timeUnixNano":"1","asDouble":0.5}]}}]}]}]}"#;

fn protobuf(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    json::decode(text.as_bytes(), &Limits::default(), &mut bytes).unwrap();
    bytes
}

fn binary(messages: &[&[u8]]) -> Vec<u8> {
    let mut file = Vec::new();
    for message in messages {
        append_binary(message, &mut file).unwrap();
    }
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Reads a file: the signal and the items of each frame, or the text of the error.
fn read_with(file: impl Read, limits: Limits) -> Vec<Result<(Signal, u64), String>> {
    FrameReader::new(file, limits)
        .map(|frame| match frame {
            Ok(frame) => Ok((frame.signal, frame.counts.items)),
            Err(error) => Err(error.to_string()),
        })
        .collect()
}

fn read(file: &[u8]) -> Vec<Result<(Signal, u64), String>> {
    read_with(file, Limits::default())
}

fn all_three() -> Vec<Result<(Signal, u64), String>> {
    vec![
        Ok((Signal::Traces, 1)),
        Ok((Signal::Logs, 2)),
        Ok((Signal::Metrics, 1)),
    ]
}

fn lines() -> String {
    format!("\u{feff}{SPANS}\n\n{LOGS}\r\n{GAUGE}")
}

fn messages() -> Vec<u8> {
    binary(&[&protobuf(SPANS), &protobuf(LOGS), &protobuf(GAUGE)])
}

#[test]
fn every_input_format_is_detected_from_its_content() {
    let pretty = [SPANS, LOGS, GAUGE].map(|text| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    });
    let own_frames: Vec<Vec<u8>> = [SPANS, LOGS, GAUGE].map(|text| zstd(&protobuf(text))).into();
    let own_texts: Vec<Vec<u8>> = [SPANS, LOGS, GAUGE].map(|text| zstd(text.as_bytes())).into();
    let slices = |frames: &[Vec<u8>]| binary(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let forms: [(&str, Vec<u8>); 5] = [
        ("lines", lines().into_bytes()),
        ("documents", pretty.join("\n").into_bytes()),
        ("binary", messages()),
        ("binary of zstd", slices(&own_frames)),
        ("binary of zstd of JSON", slices(&own_texts)),
    ];
    for (form, file) in forms {
        assert_eq!(read(&file), all_three(), "{form}");
        assert_eq!(read(&gzip(&file)), all_three(), "{form} in gzip");
        assert_eq!(read(&zstd(&file)), all_three(), "{form} in zstd");
        let (front, back) = file.split_at(file.len() / 2);
        assert_eq!(
            read(&[gzip(front), gzip(back)].concat()),
            all_three(),
            "{form} in two gzip members"
        );
        assert_eq!(
            read(&[zstd(front), zstd(back)].concat()),
            all_three(),
            "{form} in two zstd frames"
        );
    }
}

#[test]
fn json_lines_and_binary_frames_round_trip_the_same_bytes() {
    let message = protobuf(GAUGE);
    let mut text = Vec::new();
    append_json_line(Signal::Metrics, &message, &mut text).unwrap();
    assert_eq!(text, format!("{GAUGE}\n").as_bytes());
    for file in [text.repeat(2), binary(&[&message, &message])] {
        let frames: Vec<Frame> = FrameReader::new(file.as_slice(), Limits::default())
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(frames[1].bytes, message);
        assert_eq!(frames[1].offset, file.len() as u64 / 2);
    }
}

#[test]
fn protobuf_message_that_starts_like_json_is_detected_as_protobuf() {
    let name = |length: usize| SPANS.replace("\"a\"", &format!("\"{}\"", "a".repeat(length)));
    let is_like_text = |message: &Vec<u8>| message.starts_with(b"\n{");
    let message = (1..127)
        .map(|length| protobuf(&name(length)))
        .find(is_like_text)
        .unwrap();
    assert_eq!(read(&binary(&[&message])), [Ok((Signal::Traces, 1))]);
}

#[test]
fn invalid_line_is_reported_with_its_number_and_the_next_is_read() {
    let file = format!("{SPANS}\n{{\"resourceSpans\":[{{\n\n{{\"step\":1}}\n{LOGS}\n");
    assert_eq!(
        read(file.as_bytes()),
        [
            Ok((Signal::Traces, 1)),
            Err(
                "line 2: the text ends where a field's name must be in `resourceSpans` at byte 19".to_owned()
            ),
            Err("line 4: the object has none of resourceSpans, resourceMetrics and resourceLogs".to_owned()),
            Ok((Signal::Logs, 2)),
        ]
    );
}

#[test]
fn truncated_first_line_is_an_error_of_that_line_only() {
    let file = format!("{{\"resourceSpans\":[\n{LOGS}\n");
    let found = read(file.as_bytes());
    assert!(
        found[0].as_ref().unwrap_err().starts_with("line 1: "),
        "{found:?}"
    );
    assert_eq!(found[1..], [Ok((Signal::Logs, 2))]);
}

#[test]
fn error_in_a_multiline_document_is_reported_with_its_line() {
    let file = "{\n \"resourceSpans\": [\n  {\"scopeSpans\": 5}\n ]\n}\n";
    assert_eq!(
        read(file.as_bytes()),
        [Err(
            "line 3: expected a list of objects in `scopeSpans` at byte 39".to_owned()
        )]
    );
}

#[test]
fn truncated_last_message_is_reported_in_every_format() {
    let torn = Err("the input ends in the middle of a message");
    for (file, whole) in [
        (lines().into_bytes(), 2),
        (messages(), 2),
        (gzip(&messages()), 0),
        (zstd(&messages()), 0),
    ] {
        let found = read(&file[..file.len() - 3]);
        let last = found.last().unwrap().as_ref().map_err(|text| {
            let error = text.split_once(": ").unwrap().1;
            error.split_once(';').map_or(error, |(first, _)| first)
        });
        assert_eq!(last, torn.as_ref().map_err(|text| *text));
        assert!(found.len() > whole && found[..whole] == all_three()[..whole]);
    }
    let pretty = "{\n \"resourceSpans\": [\n";
    assert_eq!(
        read(pretty.as_bytes()),
        [Err("line 1: the input ends in the middle of a message".to_owned())]
    );
}

#[test]
fn truncated_binary_input_yields_every_complete_message() {
    let file = messages();
    for cut in 0..file.len() {
        let found = read(&file[..cut]);
        let whole = found.iter().filter(|frame| frame.is_ok()).count();
        assert_eq!(found[..whole], all_three()[..whole], "{cut}");
        assert!(found.len() <= whole + 1, "{cut}");
    }
}

#[test]
fn truncated_text_yields_every_complete_item_and_reports_where_they_end() {
    let gauge = r#"{"name":"g","gauge":{"dataPoints":[{"timeUnixNano":"1","asDouble":0.5}]}}"#;
    let span = r#"{"name":"a","startTimeUnixNano":"1"}"#;
    let records = [r#"{"timeUnixNano":"1"}"#, r#"{"severityNumber":9}"#];
    let documents = format!("{SPANS}\n{LOGS}\n{GAUGE}").replace("]}]}]}", "]\n}]}]}");
    for file in [lines(), documents] {
        let ends: Vec<usize> = [span, records[0], records[1], gauge]
            .into_iter()
            .map(|item| file.find(item).unwrap() + item.len())
            .collect();
        for cut in 0..file.len() {
            let found = read(&file.as_bytes()[..cut]);
            let items: u64 = found.iter().flatten().map(|(_, items)| items).sum();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(items, whole as u64, "{cut}: {found:?}");
            let Some(error) = found.iter().find_map(|frame| frame.as_ref().err()) else {
                continue;
            };
            assert_eq!(found.last().unwrap().as_ref().err(), Some(error));
            if let Some((_, until)) = error.split_once("before byte ") {
                let until: usize = until.split_once(' ').unwrap().0.parse().unwrap();
                let last = ends.iter().filter(|end| **end <= cut).max();
                assert!((*last.unwrap()..=cut).contains(&until), "{cut}: {error}");
            }
        }
    }
    let many: Vec<String> = (0..20_000)
        .map(|time| span.replace("\"1\"", &format!("\"{time}\"")))
        .collect();
    let many = SPANS.replace(span, &many.join(","));
    for whole in [gzip(many.as_bytes()), zstd(many.as_bytes())] {
        let found = read(&whole[..whole.len() * 9 / 10]);
        let Ok((Signal::Traces, items)) = found[0] else {
            panic!("{found:?}");
        };
        assert!((1_000..20_000).contains(&items) && found.len() == 2, "{found:?}");
    }
}

#[test]
fn messages_without_items_are_counted_and_not_returned() {
    let text = format!("{{}}\n{{\"resourceLogs\":[]}}\n{LOGS}\n");
    let resource_only = [0x0a, 2, 0x0a, 0];
    for file in [text.into_bytes(), binary(&[b"", &resource_only, &protobuf(LOGS)])] {
        let mut reader = FrameReader::new(file.as_slice(), Limits::default());
        assert_eq!(reader.next().unwrap().unwrap().signal, Signal::Logs);
        assert!(reader.next().is_none());
        assert_eq!(reader.empty_frames(), 2);
    }
}

#[test]
fn unknown_fields_are_counted_over_all_frames() {
    let file = "{\"resourceLogs\":[{\"x\":1}],\"y\":2}\n{\"resourceLogs\":[{\"x\":1}]}\n";
    let mut reader = FrameReader::new(file.as_bytes(), Limits::default());
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 2);
    assert_eq!(reader.unknown_fields(), 3);
    assert_eq!(reader.first_unknown(), Some(("x", 0)));
}

#[test]
fn unknown_input_format_is_reported_once() {
    let not_otlp = "byte 0: this is neither OTLP/JSON nor length-delimited OTLP protobuf";
    for file in [
        &b"step 1 loss 2.5\n"[..],
        b"[1]",
        b"\xff\xfe\x00\x01garbage",
        b"\x00",
        b"\x7fELF",
    ] {
        assert_eq!(read(file), [Err(not_otlp.to_owned())], "{file:?}");
    }
    for file in [&b""[..], b"\n \n", b"\xef\xbb\xbf"] {
        assert_eq!(read(file), [], "{file:?}");
    }
}

#[test]
fn oversized_message_is_reported_and_skipped() {
    let limits = Limits {
        bytes: 150,
        ..Limits::default()
    };
    let long = format!("{{\"resourceSpans\":[],\"x\":\"{}\"}}", "x".repeat(500_000));
    let text = format!("{SPANS}\n{long}\n{LOGS}\n");
    let found = read_with(text.as_bytes(), limits.clone());
    assert_eq!(
        found[1],
        Err("line 2: the message has more than 150 bytes; raise the limit or split the file".to_owned())
    );
    assert_eq!((&found[0], &found[2]), (&all_three()[0], &all_three()[1]));
    let file = binary(&[&protobuf(SPANS), &[0; 500_000], &protobuf(LOGS)]);
    let found = read_with(file.as_slice(), limits);
    assert!(found[1].as_ref().unwrap_err().contains("more than 150 bytes"));
    assert_eq!((&found[0], &found[2]), (&all_three()[0], &all_three()[1]));
}

#[test]
fn decompressed_size_has_its_own_limit() {
    let limits = Limits {
        inflated_bytes: 1000,
        ..Limits::default()
    };
    let large = LOGS.replace(
        "\"timeUnixNano\":\"1\"",
        &format!("\"severityText\":\"{}\"", "x".repeat(100_000)),
    );
    let own = binary(&[&zstd(&protobuf(&large)), &zstd(&protobuf(LOGS))]);
    for file in [own, gzip(format!("{large}\n{LOGS}").as_bytes())] {
        let found = read_with(file.as_slice(), limits.clone());
        assert!(
            found[0]
                .as_ref()
                .unwrap_err()
                .contains("more than 1000 bytes after decompression"),
            "{found:?}"
        );
        assert_eq!(found[1..], [Ok((Signal::Logs, 2))]);
    }
}

#[test]
fn gibibyte_line_is_rejected_without_being_buffered() {
    let line = io::repeat(b'x').take(1 << 30);
    let file = SPANS
        .as_bytes()
        .chain(&b"\n{"[..])
        .chain(line)
        .chain(&b"\n"[..])
        .chain(LOGS.as_bytes());
    let limits = Limits {
        bytes: 1 << 20,
        ..Limits::default()
    };
    let found = read_with(file, limits);
    assert_eq!(found[0], all_three()[0]);
    assert!(found[1].as_ref().unwrap_err().contains("more than 1048576 bytes"));
    assert_eq!(found[2..], all_three()[1..2]);
}

#[test]
fn malformed_message_is_reported_with_its_offset_and_the_next_is_read() {
    let broken_zstd = [&zstd(&protobuf(LOGS))[..8], &[0xff; 8]].concat();
    let unknown = [0x0a, 6, 0x12, 4, 0x12, 2, 0x98, 0];
    let file = binary(&[&[0x0a, 9], &broken_zstd, &unknown, &protobuf(LOGS)]);
    let found = read(&file);
    assert_eq!(
        found[0],
        Err("byte 0: the message ends inside a field at byte 1".to_owned())
    );
    assert!(
        found[1].as_ref().unwrap_err().contains("cannot be decompressed"),
        "{found:?}"
    );
    assert!(found[2].is_err(), "{found:?}");
    assert_eq!(found[3..], [Ok((Signal::Logs, 2))]);
}

#[test]
fn read_error_is_reported_and_ends_the_input() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the disk is gone"))
        }
    }
    let found = read_with(
        SPANS.as_bytes().chain(&b"\n"[..]).chain(Failing),
        Limits::default(),
    );
    assert_eq!(found[0], all_three()[0]);
    assert_eq!(
        found[1..],
        [Err(
            "line 2: the input cannot be read: the disk is gone".to_owned()
        )]
    );
}

#[test]
fn each_object_of_a_json_array_is_a_frame() {
    let objects = [SPANS, LOGS, GAUGE];
    for (separator, indent) in [(",", ""), (" ,\n", "\n  ")] {
        let array = format!("[{indent}{}{indent}]\n", objects.join(separator));
        assert_eq!(read(array.as_bytes()), all_three(), "{array}");
        // Truncated at any offset: each complete object, and one error.
        for cut in 2..array.len() - 2 {
            let found = read(&array.as_bytes()[..cut]);
            let complete = objects
                .iter()
                .filter(|object| array[..cut].contains(**object))
                .count();
            assert!(
                found.iter().filter(|frame| frame.is_ok()).count() >= complete,
                "{cut}: {found:?}"
            );
            assert_eq!(
                found.iter().filter(|frame| frame.is_err()).count(),
                1,
                "{cut}: {found:?}"
            );
        }
    }
    assert_eq!(read(b"[]"), []);
    assert_eq!(read(b"[ {} , {} ]").len(), 0);
}

#[test]
fn array_of_anything_but_objects_is_rejected() {
    for text in ["[1,2]", "[\"a\"]", "[[{}]]", "["] {
        let found = read(text.as_bytes());
        assert!(found.len() == 1 && found[0].is_err(), "{text}: {found:?}");
    }
}

#[test]
fn protobuf_json_is_read_and_counted_only_if_enabled() {
    let text = SPANS.replace(
        "\"name\"",
        "\"traceId\":\"S/kvNXezTaajzpKdDg5HNg==\",\"kind\":\"SPAN_KIND_SERVER\",\"name\"",
    );
    assert!(read(text.as_bytes())[0].is_err());
    let mut frames = FrameReader::new(text.as_bytes(), Limits::default()).accept_protobuf_json();
    assert_eq!(frames.next().unwrap().unwrap().counts.items, 1);
    assert!(frames.next().is_none());
    assert_eq!(frames.protobuf_json(), 1);
}
