use pulsetrain_otlp::json::encode;

use super::*;

fn otlp(text: &str) -> String {
    let answer = convert_response(text.as_bytes(), &Limits::default());
    assert_eq!(answer.problems, [""; 0]);
    let mut out = Vec::new();
    for (signal, bytes) in &answer.messages {
        encode(*signal, bytes, &mut out).expect("messages are OTLP");
        out.push(b'\n');
    }
    String::from_utf8(out).expect("OTLP/JSON is UTF-8")
}

fn problems(text: &str) -> Vec<String> {
    convert_response(text.as_bytes(), &Limits::default()).problems
}

const SPAN: &str = r#"{"scopeSpans":[{"spans":[{"name":"a"}]}]}"#;

#[test]
fn backend_response_is_distinguished_from_otlp_by_its_first_key() {
    for head in [
        "{\"batches\":[",
        "\u{feff}{ \n \"trace\" : {",
        "{\"result\":",
        "{\"data\": null",
        "{\"errors\":",
    ] {
        assert!(looks_like_response(head.as_bytes()), "{head}");
    }
    for head in [
        "{\"resourceSpans\":[",
        "{}",
        "[1]",
        "{\"data",
        "{\"database\":1}",
        "",
        "\0\0\u{1}",
    ] {
        assert!(!looks_like_response(head.as_bytes()), "{head}");
    }
}

#[test]
fn every_tempo_response_format_yields_the_same_span() {
    let plain = format!("{{\"resourceSpans\":[{SPAN}]}}\n");
    for answer in [
        format!("{{\"batches\":[{SPAN}]}}"),
        format!("{{\"trace\":{{\"resourceSpans\":[{SPAN}]}},\"metrics\":{{}}}}"),
        format!("{{\"trace\":{{\"batches\":[{SPAN}]}}}}"),
        format!("{{\"trace\":{{\"resource_spans\":[{SPAN}]}}}}"),
        format!("{{\"result\":{{\"resourceSpans\":[{SPAN}]}}}}"),
    ] {
        assert_eq!(otlp(&answer), plain, "{answer}");
    }
}

#[test]
fn consecutive_result_objects_are_all_read() {
    let one = format!("{{\"result\":{{\"resourceSpans\":[{SPAN}]}}}}\n");
    let plain = format!("{{\"resourceSpans\":[{SPAN}]}}\n");
    assert_eq!(otlp(&(one.repeat(3) + &plain)).lines().count(), 4);
    let other = format!("{one}{{\"resourceLogs\":[]}}");
    let at = one.trim_end().len();
    let problem = format!("the object after byte {at} is not an answer of a trace store");
    assert_eq!(problems(&other), [problem]);
}

#[test]
fn fields_that_otlp_does_not_have_are_reported_with_their_offset() {
    let old = SPAN.replace("scopeSpans", "instrumentationLibrarySpans");
    let text = format!("{{\"batches\":[{SPAN},{old}]}}");
    let at = text.find("instrumentation").expect("the field is there");
    let problem = format!(
        "1 fields that OTLP does not have are left out; the first is \"instrumentationLibrarySpans\" at byte {at}"
    );
    assert_eq!(problems(&text), [problem]);
}

#[test]
fn problem_reported_by_a_store_is_returned() {
    assert_eq!(
        problems("{\"trace\":{},\"status\":\"PARTIAL\",\"message\":\"too large\"}"),
        ["the store returned only a part of the trace: too large"]
    );
    let [error] = &problems("{\"error\":{\"httpCode\":404,\"message\":\"No traces found\"}}")[..] else {
        panic!("one problem");
    };
    assert!(error.contains("No traces found"), "{error}");
    assert_eq!(problems("{\"data\":[],\"errors\":null}"), [""; 0]);
    assert_eq!(problems(" "), ["the answer is empty"]);
}

#[test]
fn one_bad_resource_does_not_hide_the_others() {
    let bad = "{\"scopeSpans\":[{\"spans\":[{\"name\":7}]}]}";
    let text = format!("{{\"batches\":[{SPAN},{bad},{SPAN}]}}");
    let answer = convert_response(text.as_bytes(), &Limits::default());
    assert_eq!(answer.messages.len(), 2);
    let at = text.find("7").expect("the bad name is there");
    assert_eq!(
        answer.problems,
        [format!("expected a string in `name` at byte {at}")]
    );
}

#[test]
fn truncated_response_is_reported_with_its_offset() {
    let complete = format!("{{\"result\":{{\"resourceSpans\":[{SPAN}]}}}}\n");
    let text = format!("{complete}{}", &complete[..30]);
    let answer = convert_response(text.as_bytes(), &Limits::default());
    assert_eq!(answer.messages.len(), 1);
    let [problem] = &answer.problems[..] else {
        panic!("one problem")
    };
    assert!(
        problem.contains(&format!("at byte {}", complete.len())),
        "{problem}"
    );
}

#[test]
fn jaeger_trace_is_converted_without_loss() {
    let text = r#"{"data":[{"traceID":"1","spans":[{"traceID":"1","spanID":"2","operationName":"op","flags":1,
        "references":[{"refType":"CHILD_OF","traceID":"1","spanID":"3"},{"refType":"FOLLOWS_FROM","traceID":"1","spanID":"4"},
            {"refType":"CHILD_OF","traceID":"9","spanID":"5"}],
        "startTime":1795220320000001,"duration":2,"processID":"p1","warnings":["late"],
        "tags":[{"key":"span.kind","type":"string","value":"server"},{"key":"error","type":"bool","value":true},
            {"key":"f","type":"float64","value":0.1},{"key":"i","type":"int64","value":"9223372036854775807"},
            {"key":"odd","type":"int64","value":"x"},{"key":"none","type":"string","value":null}],
        "logs":[{"timestamp":1795220320000002,"fields":[{"key":"message","type":"string","value":"m"}]}]}],
        "processes":{"p1":{"serviceName":"s","tags":null}}}]}"#;
    let expected = concat!(
        r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]},"scopeSpans":[{"scope":{},"#,
        r#""spans":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000002","parentSpanId":"0000000000000003","#,
        r#""name":"op","kind":2,"startTimeUnixNano":"1795220320000001000","endTimeUnixNano":"1795220320000003000","attributes":["#,
        r#"{"key":"f","value":{"doubleValue":0.1}},{"key":"i","value":{"intValue":"9223372036854775807"}},"#,
        r#"{"key":"odd","value":{"stringValue":"x"}},{"key":"none","value":{"stringValue":"null"}},"#,
        r#"{"key":"jaeger.internal.warnings","value":{"arrayValue":{"values":[{"stringValue":"late"}]}}}],"#,
        r#""events":[{"timeUnixNano":"1795220320000002000","attributes":[{"key":"message","value":{"stringValue":"m"}}]}],"#,
        r#""links":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000004"},"#,
        r#"{"traceId":"00000000000000000000000000000009","spanId":"0000000000000005","#,
        r#""attributes":[{"key":"opentracing.ref_type","value":{"stringValue":"child_of"}}]}],"#,
        r#""status":{"code":2},"flags":1}]}]}]}"#,
        "\n"
    );
    assert_eq!(otlp(text), expected);
}

#[test]
fn jaeger_span_with_an_invalid_id_is_reported_with_its_offset() {
    let [problem] = &problems(r#"{"data":[{"spans":[{"traceID":"xyz","spanID":"1","startTime":0}]}]}"#)[..]
    else {
        panic!("one problem")
    };
    assert!(
        problem.contains("at byte 9") && problem.contains("\"xyz\""),
        "{problem}"
    );
}

#[test]
fn truncated_response_yields_every_complete_span_and_one_problem() {
    let tempo = r#"{"batches":[{"resource":{},"scopeSpans":[{"scope":{"name":"s"},"spans":[{"spanId":"AAAAAAAAAAE=","name":"a"},{"spanId":"AAAAAAAAAAI=","name":"b"}]}]},{"scopeSpans":[{"spans":[{"name":"c"}]}]}]}"#;
    let newer = tempo.replace("{\"batches\"", "{\"trace\":{\"resourceSpans\"") + "}";
    let jaeger = newer.replace("{\"trace\"", "{\"result\"");
    let own = r#"{"data":[{"traceID":"1","spans":[{"traceID":"1","spanID":"1","operationName":"a","startTime":1,"duration":1},{"traceID":"1","spanID":"2","operationName":"b","startTime":1,"duration":1}],"processes":{}},{"traceID":"2","spans":[{"traceID":"2","spanID":"3","operationName":"c","startTime":1,"duration":1}],"processes":{}}]}"#;
    for text in [tempo, &newer, &jaeger, own] {
        let ends: Vec<usize> = ["\"a\"", "\"b\"", "\"c\""]
            .into_iter()
            .map(|name| {
                let name = text.find(name).unwrap();
                name + text[name..].find('}').unwrap() + 1
            })
            .collect();
        for cut in 0..text.len() {
            let answer = convert_response(&text.as_bytes()[..cut], &Limits::default());
            let items = answer.messages.iter().map(|(signal, bytes)| {
                pulsetrain_otlp::limits::check(*signal, bytes, &Limits::default())
                    .unwrap()
                    .items
            });
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(items.sum::<u64>(), whole as u64, "{}", &text[..cut]);
            assert_eq!(answer.problems.len(), 1, "{:?}", answer.problems);
        }
    }
}
