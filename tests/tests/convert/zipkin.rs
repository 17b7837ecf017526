//! Zipkin's JSON as an input of `convert`.

use std::fs;

use pulsetrain_tests::{Finished, Folder, convert, otlp::gzip};

/// Converts bytes; returns the process output and the text of the result.
fn converted(name: &str, bytes: impl AsRef<[u8]>) -> (Finished, String) {
    let folder = Folder::new();
    let input = folder.file(name, bytes.as_ref());
    let output = folder.path("out.jsonl");
    let finished = convert(&[input], &output, &[]);
    let text = fs::read_to_string(output).unwrap_or_default();
    (finished, text)
}

/// A trace as in the documentation of Zipkin's version 2, with a shared span, and spans with missing fields.
const ZIPKIN: &str = r#"[
  {"traceId": "5982fe77008310cc80f1da5e10147517", "id": "bd7a977555f6b982", "name": "get /", "kind": "CLIENT",
   "timestamp": 1458702548467000, "duration": 386000,
   "localEndpoint": {"serviceName": "web", "ipv4": "192.0.2.1", "port": 8080},
   "remoteEndpoint": {"serviceName": "api", "ipv4": "192.0.2.2", "port": 9000},
   "annotations": [{"timestamp": 1458702548467500, "value": "ws"}],
   "tags": {"http.path": "/", "error": "timeout", "otel.scope.name": "http"}},
  {"traceId": "5982fe77008310cc80f1da5e10147517", "id": "bd7a977555f6b982", "name": "get /", "kind": "SERVER", "shared": true,
   "timestamp": 1458702548478000, "duration": 354374, "localEndpoint": {"serviceName": "api"}},
  {"traceId": "5982fe77008310cc80f1da5e10147517", "id": "ebf33e1a81dc6f71", "parentId": "bd7a977555f6b982", "name": "sql",
   "timestamp": 1458702548478000, "duration": 1000, "localEndpoint": {"serviceName": "api"}},
  {"traceId": "5982fe77008310cc80f1da5e10147517", "id": "ebf33e1a81dc6f72", "name": "late"},
  {"traceId": "none", "id": "ebf33e1a81dc6f73", "timestamp": 1}
]"#;

#[test]
fn zipkin_spans_are_read_and_invalid_ones_are_reported() {
    let folder = Folder::new();
    let traces = format!("[{ZIPKIN}]");
    for (name, text) in [("spans.json", ZIPKIN), ("traces.json", &traces)] {
        let input = folder.file(name, text);
        let out = folder.path("out.jsonl");
        let finished = convert(&[input], &out, &[]).expect_code(1);
        let problems = finished.summary()["inputs"][0]["problems"].to_string();
        assert!(problems.contains("it has no timestamp"), "{problems}");
        assert!(problems.contains("is not an id of up to 32"), "{problems}");
        let out = fs::read_to_string(out).expect("the output can be read");
        for part in [
            r#""service.name","value":{"stringValue":"web"}"#,
            r#""peer.service","value":{"stringValue":"api"}"#,
            r#""network.peer.port","value":{"intValue":"9000"}"#,
            r#""http.path","value":{"stringValue":"/"}"#,
            r#""scope":{"name":"http"}"#,
            r#""startTimeUnixNano":"1458702548467000000","endTimeUnixNano":"1458702548853000000""#,
            r#""name":"ws""#,
            r#""message":"timeout""#,
            // The server's part of the shared span is a child of the client's.
            r#""spanId":"4285688aaa09467d","parentSpanId":"bd7a977555f6b982""#,
            // The child of the server is below the server.
            r#""spanId":"ebf33e1a81dc6f71","parentSpanId":"4285688aaa09467d""#,
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        assert_eq!(out.matches("\"traceId\"").count(), 3, "{out}");
    }
}

/// Returns a span with this id.
fn span(id: u64) -> String {
    format!(
        r#"{{"traceId": "5af7183fb1d4cf5f", "id": "{id:x}", "name": "get", "timestamp": 1556604172355737, "duration": 1431}}"#
    )
}

#[test]
fn every_array_or_span_of_a_zipkin_file_is_read_and_trailing_garbage_is_reported() {
    let arrays = [1, 2, 3].map(|id| format!("[{}]\n", span(id))).concat();
    let spans = [1, 2, 3].map(|id| span(id) + "\n").concat();
    for lines in [arrays, spans] {
        let marked = format!("\u{feff}{lines}");
        for (name, bytes) in [
            ("lines.jsonl", lines.clone().into_bytes()),
            ("marked.jsonl", marked.clone().into_bytes()),
            ("marked.jsonl.gz", gzip(marked.as_bytes())),
            ("lines.jsonl.gz", [gzip(lines.as_bytes()), gzip(b" \n")].concat()),
        ] {
            let (finished, text) = converted(name, bytes);
            finished.expect_code(0);
            assert_eq!(text.matches("\"spanId\"").count(), 3, "{name}: {text}");
        }
        let (finished, text) = converted("cut.jsonl", format!("{lines}garbage"));
        let finished = finished.expect_code(1);
        finished.expect_words(&["cannot be read to their end", "line 4", "the first 3 are used"]);
        assert_eq!(text.matches("\"spanId\"").count(), 3, "{text}");
    }
    let nulls = r#""annotations": null, "tags": null, "shared": null, "duration""#;
    let (finished, text) = converted("nulls.jsonl", span(1).replace("\"duration\"", nulls));
    finished.expect_code(0);
    assert_eq!(text.matches("\"spanId\"").count(), 1, "{text}");
    let undated = r#"{"traceId": "5af7183fb1d4cf5f", "id": "4"}"#;
    let (finished, text) = converted("undated.jsonl", format!("{}\n{undated}\n{}", span(1), span(2)));
    let finished = finished.expect_code(1);
    finished.expect_words(&["span 2, ", "it has no timestamp"]);
    assert_eq!(text.matches("\"spanId\"").count(), 2, "{text}");
}

#[test]
fn children_of_a_shared_span_are_below_the_side_of_their_service() {
    let span = |id: u64, parent: u64, service: &str, more: &str| {
        format!(
            r#"{{"traceId": "4bf92f3577b34da6", "id": "{id:x}", "parentId": "{parent:x}", "timestamp": 1700000000000000,
                "localEndpoint": {{"serviceName": "{service}"}}{more}}}"#
        )
    };
    let (client, server) = (
        span(1, 9, "web", r#", "kind": "CLIENT""#),
        span(1, 9, "db", r#", "kind": "SERVER", "shared": true"#),
    );
    let (of_client, of_server) = (span(2, 1, "web", ""), span(3, 1, "db", ""));
    for spans in [
        [&client, &server, &of_client, &of_server],
        [&of_server, &of_client, &server, &client],
    ] {
        let spans = spans.map(String::as_str).join(",");
        let (finished, text) = converted("shared.json", format!("[{spans}]"));
        finished.expect_code(0);
        for part in [
            r#""spanId":"0000000000000001","parentSpanId":"0000000000000009""#,
            r#""spanId":"fffffffffffffffe","parentSpanId":"0000000000000001""#,
            r#""spanId":"0000000000000002","parentSpanId":"0000000000000001""#,
            r#""spanId":"0000000000000003","parentSpanId":"fffffffffffffffe""#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn zipkin_spans_of_version_1_are_rejected() {
    let old = r#"{"traceId": "4bf92f3577b34da6", "id": "1", "name": "get", "timestamp": 1700000000000000, "duration": 1000,
        "annotations": [{"endpoint": {"serviceName": "web"}, "timestamp": 1700000000000000, "value": "cs"}],
        "binaryAnnotations": [{"key": "http.path", "value": "/x", "endpoint": {"serviceName": "web"}}]}"#;
    let (finished, text) = converted("old.json", format!("[{old}, {}]", span(2)));
    finished
        .expect_code(1)
        .expect_words(&["it is of version 1 of the format"]);
    assert_eq!(text.matches("\"spanId\"").count(), 1, "{text}");
}
