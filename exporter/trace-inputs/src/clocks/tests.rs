use super::*;

const SECOND: u64 = 1_700_000_000_000_000_000;

/// A message with one span of a service: its number, the number of its parent, its kind, and its times relative to the base
/// second.
fn span(service: &str, (number, parent): (u64, u64), kind: i32, start: u64, end: u64) -> Vec<u8> {
    let parent = if parent == 0 {
        String::new()
    } else {
        format!("{parent:016x}")
    };
    encoded(&format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}},
        "scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"{number:016x}","parentSpanId":"{parent}","kind":{kind},
        "startTimeUnixNano":"{}","endTimeUnixNano":"{}","events":[{{"timeUnixNano":"{}"}},{{"name":"undated"}}]}}]}}]}}]}}"#,
        7,
        SECOND + start,
        SECOND + end,
        SECOND + start,
    ))
}

fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    pulsetrain_otlp::json::decode(text.as_bytes(), &Default::default(), &mut bytes).unwrap();
    bytes
}

fn aligned(messages: &[(Signal, Vec<u8>)], memory: usize) -> (Vec<MovedClock>, Vec<String>) {
    let room = MemoryBudget {
        bytes: memory,
        folder: None,
    };
    let mut alignment = ClockAlignment::new(&room).unwrap();
    for (signal, message) in messages {
        alignment.add(*signal, message).unwrap();
    }
    let mut out = Vec::new();
    let moved = alignment.align(&mut |signal, message: Vec<u8>| {
        let mut text = Vec::new();
        pulsetrain_otlp::json::encode(signal, &message, &mut text).unwrap();
        out.push(String::from_utf8(text).unwrap());
        Ok::<(), ConvertError>(())
    });
    (moved.unwrap(), out)
}

/// Returns the start of the only span of a message, relative to the base second.
fn start(text: &str) -> u64 {
    let (_, start) = text.split_once(r#""startTimeUnixNano":""#).unwrap();
    start.split('"').next().unwrap().parse::<u64>().unwrap() - SECOND
}

#[test]
fn call_chain_is_centered_and_all_data_of_a_process_is_shifted() {
    // The clock of b lags that of a by 1000, and that of c lags that of b by 500. Each call takes 100 in each direction.
    let messages = [
        (Signal::Traces, span("a", (1, 0), CLIENT, 5_000, 6_000)),
        (Signal::Traces, span("b", (2, 1), SERVER, 4_100, 4_900)),
        (Signal::Traces, span("b", (3, 2), CLIENT, 4_200, 4_800)),
        (Signal::Traces, span("c", (4, 3), SERVER, 3_800, 4_200)),
        (
            Signal::Logs,
            encoded(&format!(
                r#"{{"resourceLogs":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"c"}}}}]}},
                "scopeLogs":[{{"logRecords":[{{"timeUnixNano":"{}","observedTimeUnixNano":"0"}}]}}]}}]}}"#,
                SECOND + 3_900
            )),
        ),
        (
            Signal::Metrics,
            encoded(&format!(
                r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"b"}}}}]}},
                "scopeMetrics":[{{"metrics":[{{"gauge":{{"dataPoints":[{{"startTimeUnixNano":"{}","asInt":"1"}}]}}}}]}}]}}]}}"#,
                SECOND + 1
            )),
        ),
    ];
    for memory in [1, 1 << 20] {
        let (moved, out) = aligned(&messages, memory);
        let expected = [("b", 1_000), ("c", 1_500)];
        let expected = expected.map(|(name, nanos)| MovedClock {
            name: name.to_owned(),
            nanos,
        });
        assert_eq!(moved, expected);
        let starts: Vec<u64> = out[..4].iter().map(|text| start(text)).collect();
        assert_eq!(starts, [5_000, 5_100, 5_200, 5_300]);
        assert!(out[3].contains(&format!(
            r#""events":[{{"timeUnixNano":"{}"}},{{"name":"undated"}}]"#,
            SECOND + 5_300
        )));
        assert!(out[4].contains(&(SECOND + 5_400).to_string()), "{}", out[4]);
        assert_eq!(start(&out[5]), 1_001);
        assert!(out[5].contains(r#""asInt":"1""#), "{}", out[5]);
    }
}

#[test]
fn calls_in_both_directions_bound_one_shift() {
    // The clock of b lags that of a by 30.
    let messages = [
        (Signal::Traces, span("a", (1, 0), CLIENT, 1_000, 1_100)),
        (Signal::Traces, span("b", (2, 1), SERVER, 980, 990)),
        (Signal::Traces, span("b", (3, 0), 1, 1_005, 1_025)),
        (Signal::Traces, span("b", (4, 3), CLIENT, 1_010, 1_020)),
        (Signal::Traces, span("a", (5, 4), SERVER, 1_041, 1_049)),
    ];
    let (moved, _) = aligned(&messages, 1 << 20);
    let expected = MovedClock {
        name: "b".to_owned(),
        nanos: 30,
    };
    assert_eq!(moved, [expected]);
}

#[test]
fn contradicting_calls_in_both_directions_begin_before_their_parents_by_the_same_time() {
    // By the first call, b lags by at least 20; by the second one, by at most 10.
    let messages = [
        (Signal::Traces, span("a", (1, 0), 4, 1_000, 1_001)),
        (Signal::Traces, span("b", (2, 1), 5, 980, 990)),
        (Signal::Traces, span("b", (3, 0), 4, 1_000, 1_001)),
        (Signal::Traces, span("a", (4, 3), 5, 1_010, 1_020)),
    ];
    let (moved, _) = aligned(&messages, 1 << 20);
    assert_eq!(moved.iter().map(|clock| clock.nanos).collect::<Vec<_>>(), [15]);
}

#[test]
fn children_within_their_parents_or_outliving_them_are_not_shifted() {
    for (kind, start, end) in [(SERVER, 10, 90), (SERVER, 0, 100), (5, 500, 900), (0, 50, 150)] {
        let messages = [
            (Signal::Traces, span("a", (1, 0), CLIENT, 0, 100)),
            (Signal::Traces, span("b", (2, 1), kind, start, end)),
        ];
        assert_eq!(aligned(&messages, 1 << 20).0, [], "{kind} {start} {end}");
    }
}

#[test]
fn consumer_that_starts_before_its_producer_is_shifted_to_the_producer_start() {
    let messages = [
        (Signal::Traces, span("a", (1, 0), 4, 100, 110)),
        (Signal::Traces, span("b", (2, 1), 5, 70, 900)),
    ];
    let (moved, out) = aligned(&messages, 1 << 20);
    assert_eq!(moved[0].nanos, 30);
    assert_eq!(start(&out[1]), 100);
}

#[test]
fn malformed_otlp_passes_through_clock_alignment_unchanged() {
    let mut cut = span("a", (1, 0), CLIENT, 0, 100);
    cut.truncate(cut.len() - 3);
    let room = MemoryBudget {
        bytes: 1,
        folder: None,
    };
    let mut alignment = ClockAlignment::new(&room).unwrap();
    alignment.add(Signal::Traces, &cut).unwrap();
    let mut out = Vec::new();
    let moved = alignment.align(&mut |_, message: Vec<u8>| {
        out.push(message);
        Ok::<(), ConvertError>(())
    });
    assert_eq!((moved.unwrap(), out), (vec![], vec![cut]));
}
