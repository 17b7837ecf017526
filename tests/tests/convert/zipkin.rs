//! Zipkin's JSON as an input of `convert`.

use std::fs;

use pulsetrain_tests::{Finished, Folder, convert};

use crate::convert_inputs::gzip;

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
fn every_array_of_a_zipkin_file_is_read_and_trailing_garbage_is_reported() {
    let lines: String = (1..=3).map(|id| format!("[{}]\n", span(id))).collect();
    for (name, bytes) in [
        ("lines.jsonl", lines.clone().into_bytes()),
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
