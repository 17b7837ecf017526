use serde_json::Value;

use super::*;

const TEXT: &str = r#"{"resourceSpans":[{"resource":{"a":["]}"]},"scopeSpans":[{"scope":{"name":"s"},"spans":[{"n":1,"events":[{"x":0}]},
 {"n":2} , {"n":3}]},{"spans":[{"n":4}],"schemaUrl":"u"}],"schemaUrl":"r"}, {"scopeSpans":[{"spans":[{"n":5}]}]}]}"#;

/// Returns all pieces of a text that arrives `step` bytes at a time, and the rest.
fn pieces(text: &str, step: usize, deep: bool) -> (Vec<Value>, String) {
    let (mut pieces, mut found) = (Pieces::default(), Vec::new());
    let mut pending: Vec<u8> = Vec::new();
    for chunk in text.as_bytes().chunks(step) {
        pending.extend_from_slice(chunk);
        while let Some(piece) = pieces.take(&pending, deep) {
            found.push(serde_json::from_slice(&piece.text).expect("a piece is JSON"));
            pending.drain(..piece.length);
        }
    }
    (found, String::from_utf8(pending).expect("text stays text"))
}

fn numbers(pieces: &[Value]) -> Vec<u64> {
    let lists = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let resources = pieces.iter().flat_map(|piece| lists(piece, "resourceSpans"));
    let scopes = resources.flat_map(|resource| lists(&resource, "scopeSpans"));
    let spans = scopes.flat_map(|scope| lists(&scope, "spans"));
    spans.filter_map(|span| span["n"].as_u64()).collect()
}

#[test]
fn pieces_contain_every_span_once_for_any_chunk_size() {
    for step in 1..TEXT.len() {
        for deep in [false, true] {
            let (pieces, rest) = pieces(
                &format!(
                    "{TEXT}
 {TEXT}"
                ),
                step,
                deep,
            );
            assert_eq!(numbers(&pieces), [1, 2, 3, 4, 5, 1, 2, 3, 4, 5], "{step}");
            assert_eq!(rest, "");
        }
    }
}

#[test]
fn piece_of_complete_elements_keeps_the_surrounding_fields() {
    let (pieces, _) = pieces(TEXT, 1, false);
    let whole: Value = serde_json::from_str(TEXT).unwrap();
    assert_eq!(pieces.len(), 3);
    assert_eq!(pieces[0]["resourceSpans"][0], whole["resourceSpans"][0]);
    assert_eq!(pieces[1]["resourceSpans"][0], whole["resourceSpans"][1]);
}

#[test]
fn divided_element_repeats_the_fields_that_precede_its_list() {
    let (pieces, _) = pieces(TEXT, 1, true);
    for piece in &pieces[..3] {
        let resource = &piece["resourceSpans"][0];
        assert_eq!(resource["resource"]["a"][0], "]}");
        assert_eq!(resource["scopeSpans"][0]["scope"]["name"], "s");
    }
}

#[test]
fn second_list_of_an_object_does_not_repeat_elements_of_the_first() {
    let text = r#"{"resourceSpans":[{"scopeSpans":[{"n":1},{"n":2}],"scopeLogs":[{"n":3},{"n":4}]},{"n":5}],"logRecords":[{"n":6},{"n":7}]}"#;
    for step in [1, 9, text.len() - 1] {
        for deep in [false, true] {
            let (pieces, rest) = pieces(text, step, deep);
            let all: String = pieces.iter().map(Value::to_string).collect();
            for number in 1..8 {
                assert_eq!(all.matches(&format!("\"n\":{number}")).count(), 1, "{all}");
            }
            assert_eq!(rest, "");
        }
    }
}

#[test]
fn offset_in_a_piece_maps_back_to_the_input() {
    let mut pieces = Pieces::default();
    let (first, second) = (r#"{"spans":[{"n":1}"#, r#" , {"n":2}]}"#);
    assert_eq!(pieces.take(first.as_bytes(), false).unwrap().shift, 0);
    let piece = pieces.take(second.as_bytes(), false).unwrap();
    let text = String::from_utf8(piece.text).unwrap();
    let at = text.find('2').unwrap() as i64 + piece.shift;
    assert_eq!(at, second.find('2').unwrap() as i64);
}

#[test]
fn jaeger_trace_is_never_divided() {
    let text = r#"{"data":[{"spans":[{"n":1},{"n":2}],"processes":{}},{"spans":[{"n":3}"#;
    let mut pieces = Pieces::default();
    let first = pieces.take(text.as_bytes(), true).unwrap();
    assert_eq!(
        first.text,
        br#"{"data":[{"spans":[{"n":1},{"n":2}],"processes":{}}]}"#
    );
    assert_eq!(pieces.take(&text.as_bytes()[first.length..], true), None);
}

#[test]
fn invalid_json_yields_no_piece_longer_than_the_text() {
    for text in ["", "x", "]", "}}", "{\"a\":[{", "[[[", "\"abc"] {
        let taken = Pieces::default().take(text.as_bytes(), true);
        assert!(taken.is_none_or(|piece| piece.length <= text.len()), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn pieces_of_arbitrary_text_never_exceed_the_pending_bytes(
        words in proptest::collection::vec(proptest::sample::select(&WORDS[..]), 0..60),
        step in 1..20_usize,
        deep in proptest::bool::ANY,
    ) {
        let text = words.concat();
        let (mut pieces, mut pending) = (Pieces::default(), Vec::new());
        for chunk in text.as_bytes().chunks(step) {
            pending.extend_from_slice(chunk);
            while let Some(piece) = pieces.take(&pending, deep) {
                proptest::prop_assert!((1..=pending.len()).contains(&piece.length));
                pending.drain(..piece.length);
            }
            pieces.rest(&pending);
        }
    }
}

const WORDS: [&str; 12] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\"spans\":[",
    "\"data\":[{",
    "{\"resourceSpans\":[{",
    "}]",
    "1",
];

#[test]
fn nested_brackets_use_no_memory_beyond_the_maximum_depth() {
    let mut scan = Scan::new(true, 0);
    let text = [b'['; 10 * MAX_DEPTH];
    scan.read(&text, 0);
    assert!(scan.open.len() <= MAX_DEPTH + 1);
    scan.read(&[b']'; 10 * MAX_DEPTH], text.len());
    assert_eq!(scan.end, Some(2 * text.len()));
}
