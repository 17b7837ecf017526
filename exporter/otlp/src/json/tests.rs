use super::{decode, encode, *};
use crate::{
    Signal, WireErrorKind,
    limits::{Limit, Limits},
    write::Buffer,
};

fn read(text: &str) -> Result<(Vec<u8>, Decoded), JsonError> {
    let mut bytes = Vec::new();
    let decoded = decode(text.as_bytes(), &Limits::default(), &mut bytes)?;
    Ok((bytes, decoded))
}

/// Decodes a text and encodes it again.
fn round(text: &str) -> String {
    let (bytes, decoded) = read(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    let mut again = Vec::new();
    encode(decoded.signal.expect("a signal"), &bytes, &mut again).unwrap();
    String::from_utf8(again).unwrap()
}

/// Decodes a batch of one span with these members, and encodes it again.
fn round_span(members: &str) -> String {
    let text = round(&in_span(members));
    let start = text.find(r#""spans":[{"#).unwrap() + 10;
    text[start..text.len() - 7].to_owned()
}

fn in_span(members: &str) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{{members}}}]}}]}}]}}"#)
}

fn in_point(members: &str) -> String {
    let point = format!(r#"[{{"gauge":{{"dataPoints":[{{{members}}}]}}}}]"#);
    format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":{point}}}]}}]}}"#)
}

fn error_of(text: &str) -> JsonError {
    match read(text) {
        Err(error) => error,
        Ok(_) => panic!("{text} was read"),
    }
}

/// Returns the message of an error, and the text from its offset on.
fn fault(text: &str) -> (String, &str) {
    let error = error_of(text);
    (
        error.to_string().split(" at byte").next().unwrap().to_owned(),
        &text[error.offset..],
    )
}

#[test]
fn ids_are_read_as_hexadecimal_in_either_case() {
    assert_eq!(
        round_span(r#""traceId":"00AbcDef","spanId":"""#),
        r#""traceId":"00abcdef""#
    );
    let (what, rest) = fault(r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0g"}]}]}]}"#);
    assert_eq!(what, "expected a hexadecimal digit in `traceId`");
    assert!(rest.starts_with("g\""), "{rest}");
    assert_eq!(error_of(&in_span(r#""spanId":"abc""#)).kind, JsonErrorKind::OddId);
}

#[test]
fn integers_of_64_bits_are_exact_as_strings_and_as_numbers() {
    for written in [
        "\"9007199254740993\"",
        "9007199254740993",
        "9007199254740993.0",
        "9.007199254740993e15",
    ] {
        let text = round_span(&format!(r#""endTimeUnixNano": {written}"#));
        assert_eq!(text, r#""endTimeUnixNano":"9007199254740993""#);
    }
    let lowest = in_point(r#""asInt":"-9223372036854775808""#);
    assert_eq!(round(&lowest), lowest);
    for (members, what) in [
        (
            r#""startTimeUnixNano":"18446744073709551616""#,
            "64 bits without sign",
        ),
        (r#""startTimeUnixNano":-1"#, "64 bits without sign"),
        (r#""flags":4294967296"#, "32 bits without sign"),
        (r#""kind":2147483648"#, "32 bits with sign"),
    ] {
        assert_eq!(
            error_of(&in_span(members)).kind,
            JsonErrorKind::OutOfRange(what),
            "{members}"
        );
    }
}

#[test]
fn fraction_or_padded_text_is_rejected_as_an_integer() {
    for members in [
        r#""flags":1.5"#,
        r#""flags":"1.5""#,
        r#""flags":"""#,
        r#""flags":" 1""#,
    ] {
        assert!(
            matches!(error_of(&in_span(members)).kind, JsonErrorKind::Expected(_)),
            "{members}"
        );
    }
}

#[test]
fn enum_value_by_name_is_rejected_with_the_reason() {
    assert_eq!(round_span(r#""kind":2"#), r#""kind":2"#);
    let error = error_of(&in_span(r#""kind":"SPAN_KIND_SERVER""#));
    assert!(
        error.to_string().contains("names of enum values are not valid"),
        "{error}"
    );
}

#[test]
fn doubles_are_read_from_numbers_and_strings_and_written_in_the_shortest_exact_form() {
    for (written, expected) in [
        ("2.31", "2.31"),
        ("\"2.31\"", "2.31"),
        ("0.1e-6", "1e-7"),
        ("-0.0", "-0.0"),
        ("\"NaN\"", "\"NaN\""),
        ("\"Infinity\"", "\"Infinity\""),
        ("\"-Infinity\"", "\"-Infinity\""),
    ] {
        assert_eq!(
            round(&in_point(&format!(r#""asDouble":{written}"#))),
            in_point(&format!(r#""asDouble":{expected}"#))
        );
    }
    assert_eq!(
        error_of(&in_point(r#""asDouble":1e309"#)).kind,
        JsonErrorKind::OutOfRange("a double")
    );
    for wrong in ["NaN", "\"nan\"", "\"\"", "true", "\"0x1\""] {
        assert!(matches!(
            error_of(&in_point(&format!(r#""asDouble":{wrong}"#))).kind,
            JsonErrorKind::Expected(_)
        ));
    }
}

#[test]
fn default_value_is_written_only_where_its_presence_has_a_meaning() {
    assert_eq!(
        round(&in_point(r#""asInt":"0","flags":0"#)),
        in_point(r#""asInt":"0""#)
    );
    assert_eq!(
        round_span(
            r#""name":"","attributes":[{"key":"","value":{"stringValue":""}},{"key":"k","value":{}}]"#
        ),
        r#""attributes":[{"value":{"stringValue":""}},{"key":"k","value":{}}]"#
    );
}

#[test]
fn null_value_counts_as_an_absent_field() {
    assert_eq!(
        round_span(r#""name":null,"attributes":null,"status":null,"flags":null,"kind":1"#),
        r#""kind":1"#
    );
}

#[test]
fn last_value_of_a_repeated_json_key_wins() {
    assert_eq!(
        round_span(r#""name":"a","kind":1,"name":"b","attributes":[{"key":"x"}],"attributes":[]"#),
        r#""kind":1,"name":"b""#
    );
    assert_eq!(
        round_span(r#""status":{"message":"m"},"status":{"code":2}"#),
        r#""status":{"code":2}"#
    );
    assert_eq!(round_span(r#""name":"a","name":null"#), "");
}

#[test]
fn only_the_last_value_of_a_repeated_json_key_is_counted() {
    let (_, decoded) = read(&in_span(r#""attributes":[{},{}],"attributes":[{"key":"k"}]"#)).unwrap();
    assert_eq!((decoded.counts.items, decoded.counts.attributes), (1, 1));
}

#[test]
fn unknown_fields_are_skipped_and_counted() {
    let (_, decoded) = read(&in_span(
        r#""trace_no":"00","deep":{"a":[1,{"b":"]"},null]},"name":"n""#,
    ))
    .unwrap();
    assert_eq!(decoded.unknown_fields, 2);
    let first = decoded.first_unknown.unwrap();
    assert_eq!((first.name.as_str(), first.offset), ("trace_no", 45));
    assert_eq!(decoded.counts.items, 1);
}

#[test]
fn original_field_name_is_the_same_as_the_json_name() {
    let text = in_span(r#""traceId":"00ff","startTimeUnixNano":"5","status":{"code":2}"#);
    let original = text
        .replace("resourceSpans", "resource_spans")
        .replace("scopeSpans", "scope_spans")
        .replace("traceId", "trace_id")
        .replace("startTimeUnixNano", "start_time_unix_nano");
    assert_eq!(read(&original), read(&text));
    // The last of the two names counts.
    assert_eq!(
        round_span(r#""traceId":"00","trace_id":"ff""#),
        r#""traceId":"ff""#
    );
}

#[test]
fn top_level_key_determines_the_signal() {
    let signal_of = |text| read(text).unwrap().1.signal;
    assert_eq!(
        signal_of(r#" { "x": 1, "resourceLogs" : [ ] } "#),
        Some(Signal::Logs)
    );
    assert_eq!(
        signal_of("\u{feff}{\"resourceMetrics\":null}"),
        Some(Signal::Metrics)
    );
    assert_eq!(signal_of("{}"), None);
    assert_eq!(
        error_of(r#"{"resourceLogs":[],"resourceSpans":[]}"#).kind,
        JsonErrorKind::TwoSignals
    );
}

#[test]
fn base64_is_read_in_both_alphabets() {
    for text in ["+/8=", "-_8"] {
        let written = round_span(&format!(
            r#""attributes":[{{"value":{{"bytesValue":"{text}"}}}}]"#
        ));
        assert_eq!(written, r#""attributes":[{"value":{"bytesValue":"+/8="}}]"#);
    }
}

#[test]
fn escapes_are_decoded_in_keys_and_in_values() {
    let written = round_span(r#""na\u006de":"a\"\\\/\n\u00e9\ud83d\udd25\ud83d","\ud83d":0"#);
    assert_eq!(written, "\"name\":\"a\\\"\\\\/\\né\u{1f525}\u{fffd}\"");
}

#[test]
fn invalid_utf8_becomes_the_replacement_character_when_decoding_and_encoding() {
    let mut text = in_span(r#""name":"a?b""#).into_bytes();
    let at = text.iter().position(|&byte| byte == b'?').unwrap();
    text[at] = 0xff;
    let mut bytes = Vec::new();
    decode(&text, &Limits::default(), &mut bytes).unwrap();
    let replaced = "a\u{fffd}b".as_bytes();
    let at = bytes
        .windows(replaced.len())
        .position(|window| window == replaced)
        .unwrap();
    bytes[at + 1..at + 4].copy_from_slice(b"\xff\xfe\xfd");
    let mut again = Vec::new();
    encode(Signal::Traces, &bytes, &mut again).unwrap();
    assert_eq!(
        String::from_utf8(again).unwrap(),
        in_span("\"name\":\"a\u{fffd}\u{fffd}\u{fffd}b\"")
    );
}

#[test]
fn malformed_json_is_rejected_with_the_offset_of_the_error() {
    for (text, what, rest) in [
        ("", "the text ends where an object must be", ""),
        ("[1]", "expected an object", "[1]"),
        ("{\"a\":1,}", "expected a field's name", "}"),
        ("{\"a\" 1}", "expected a colon", "1}"),
        (
            "{\"a\":1 \"b\":2}",
            "expected a comma or the end of the object",
            "\"b\":2}",
        ),
        ("{\"a\":[1 2]}", "expected a comma or the end of the list", "2]}"),
        ("{\"a\":01}", "expected a value", "01}"),
        ("{\"a\":tru}", "expected a value", "tru}"),
        (
            "{\"a\":\"x\ny\"}",
            "a string holds a control character that is not escaped",
            "\ny\"}",
        ),
        (
            "{\"a\":\"x",
            "the text ends where the end of a string must be",
            "",
        ),
        (
            "{\"a\":1",
            "the text ends where a comma or the end of the object must be",
            "",
        ),
        ("{} x", "something follows the object", "x"),
        (
            "{\"resourceLogs\":{}}",
            "expected a list of objects in `resourceLogs`",
            "{}}",
        ),
        (
            "{\"resourceLogs\":[null]}",
            "expected an object in `resourceLogs`",
            "null]}",
        ),
        (
            "{\"a\\x\":1}",
            "a string holds an escape that JSON does not have",
            "\\x\":1}",
        ),
    ] {
        assert_eq!(fault(text), (what.to_owned(), rest), "{text}");
    }
}

#[test]
fn truncated_json_is_an_error_and_leaves_the_output_unchanged() {
    let text = in_span(r#""traceId":"00ff","attributes":[{"key":"k\n","value":{"doubleValue":1.5e3}}]"#);
    for cut in 0..text.len() {
        let mut out = b"before".to_vec();
        let error = decode(&text.as_bytes()[..cut], &Limits::default(), &mut out).unwrap_err();
        assert!(error.offset <= cut, "{error} of {cut}");
        assert_eq!(out, b"before");
    }
}

#[test]
fn json_error_has_its_line_and_column() {
    let text = "{\n  \"resourceSpans\": 5\n}";
    let error = error_of(text);
    assert_eq!(error.line_column(text.as_bytes()), (2, 20));
    assert_eq!(
        error.to_string(),
        "expected a list of objects in `resourceSpans` at byte 21"
    );
}

fn limit_of(text: &str, limits: &Limits) -> Option<Limit> {
    match decode(text.as_bytes(), limits, &mut Vec::new()) {
        Err(JsonError {
            kind: JsonErrorKind::Exceeded(exceeded),
            ..
        }) => Some(exceeded.limit),
        _ => None,
    }
}

#[test]
fn json_decoding_enforces_every_limit() {
    let small = Limits {
        items: 2,
        attributes: 2,
        bytes: 1000,
        ..Limits::default()
    };
    let attributes = |count: usize| in_span(&format!(r#""attributes":[{}{{}}]"#, "{},".repeat(count - 1)));
    assert_eq!(limit_of(&attributes(2), &small), None);
    assert_eq!(limit_of(&attributes(3), &small), Some(Limit::Attributes));
    assert_eq!(limit_of(&in_span("},{},{"), &small), Some(Limit::Items));
    assert_eq!(limit_of(&in_span(&" ".repeat(1000)), &small), Some(Limit::Bytes));
    let deep = |levels: usize| {
        let value = format!(
            "{}{}",
            r#"{"arrayValue":{"values":["#.repeat(levels),
            "]}}".repeat(levels)
        );
        in_span(&format!(r#""attributes":[{{"value":{value}}}]"#))
    };
    assert_eq!(limit_of(&deep(47), &Limits::default()), None);
    assert_eq!(limit_of(&deep(10_000), &Limits::default()), Some(Limit::Depth));
}

#[test]
fn depth_limit_applies_to_unknown_values_too() {
    let text = format!(r#"{{"x":{}1{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(fault(&text).0, "expected a value that is nested less deep");
}

#[test]
fn message_of_the_maximum_depth_round_trips() {
    let limits = Limits {
        depth: usize::MAX,
        ..Limits::default()
    };
    let levels = (crate::limits::MAX_DEPTH - 6) / 2;
    let value = format!(
        "{}{{}}{}",
        r#"{"arrayValue":{"values":["#.repeat(levels),
        "]}}".repeat(levels)
    );
    let text = in_span(&format!(r#""attributes":[{{"value":{value}}}]"#));
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    decode(text.as_bytes(), &limits, &mut bytes).unwrap();
    encode(Signal::Traces, &bytes, &mut again).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), text);
}

fn fields(parts: &[(u32, &[u8])]) -> Vec<u8> {
    let mut buffer = Buffer::default();
    for (number, bytes) in parts {
        buffer.delimited(*number, bytes);
    }
    buffer.into_vec()
}

#[test]
fn scattered_list_elements_are_merged_and_the_last_scalar_wins() {
    let mut span = fields(&[
        (9, &fields(&[(1, b"a")])),
        (5, b"x"),
        (99, b"?"),
        (9, &fields(&[(1, b"b")])),
        (5, b"y"),
    ]);
    span.extend([0x30, 1, 0x30, 0]);
    let bytes = fields(&[(1, &fields(&[(2, &fields(&[(2, &span)]))]))]);
    let mut text = Vec::new();
    encode(Signal::Traces, &bytes, &mut text).unwrap();
    assert_eq!(
        String::from_utf8(text).unwrap(),
        in_span(r#""name":"y","attributes":[{"key":"a"},{"key":"b"}]"#)
    );
}

#[test]
fn unpacked_numbers_are_encoded_as_one_list() {
    let mut point = vec![0x31, 5, 0, 0, 0, 0, 0, 0, 0, 0x31, 0, 0, 0, 0, 0, 0, 0, 0];
    point.extend(fields(&[(6, &[]), (6, &[7, 0, 0, 0, 0, 0, 0, 0])]));
    let metric = fields(&[(9, &fields(&[(1, &point)]))]);
    let bytes = fields(&[(1, &fields(&[(2, &fields(&[(2, &metric)]))]))]);
    let mut text = Vec::new();
    encode(Signal::Metrics, &bytes, &mut text).unwrap();
    assert!(
        String::from_utf8(text)
            .unwrap()
            .contains(r#"[{"bucketCounts":["5","0","7"]}]"#)
    );
}

#[test]
fn protobuf_error_has_its_absolute_offset_and_leaves_the_output_unchanged() {
    let bytes = fields(&[(1, &fields(&[(2, &[0x12, 9])]))]);
    let mut out = b"before".to_vec();
    let error = encode(Signal::Traces, &bytes, &mut out).unwrap_err();
    assert_eq!((error.kind, error.offset), (WireErrorKind::Truncated, 5));
    assert_eq!(out, b"before");
}

#[test]
fn protobuf_nested_beyond_the_maximum_depth_is_rejected() {
    let body = (0..5_000).fold(Vec::new(), |inner, _| fields(&[(5, &fields(&[(1, &inner)]))]));
    let bytes = fields(&[(1, &fields(&[(2, &fields(&[(2, &fields(&[(5, &body)]))]))]))]);
    let error = encode(Signal::Logs, &bytes, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind, WireErrorKind::TooDeep);
}
