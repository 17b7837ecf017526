//! Reads back the output of the writer with the reader of this crate.

use std::collections::{HashMap, HashSet};

use super::*;
use crate::{
    AnnotationData, EventKind, Item, Time, TraceReader,
    wire::{FieldValue, Fields},
};

const NOON: u64 = 1_700_000_000_000_000_000;

fn items(bytes: &[u8]) -> Vec<Item> {
    TraceReader::new(bytes).map(Result::unwrap).collect()
}

fn events(bytes: &[u8]) -> Vec<crate::TraceEvent> {
    let event = |item| match item {
        Item::Event(event) => Some(event),
        _ => None,
    };
    items(bytes).into_iter().filter_map(event).collect()
}

fn one_lane(config: WriterConfig) -> (TraceWriter<Vec<u8>>, LaneTrack) {
    let mut trace = TraceWriter::with_config(Vec::new(), config);
    let process = trace
        .process(&Process {
            pid: 7,
            name: "rank 0",
            labels: &["host a"],
            rank: 0,
        })
        .unwrap();
    let lane = trace.lane(process, "steps", 0).unwrap();
    (trace, lane)
}

#[test]
fn timestamps_are_exact_when_they_increase_and_decrease() {
    let times = [NOON, NOON + 1, NOON, NOON - 5_000_000_000, u64::MAX, 0];
    let (mut trace, lane) = one_lane(WriterConfig::default());
    for time in times {
        trace.instant(lane, time, "tick", |_| {}).unwrap();
    }
    let read: Vec<_> = events(&trace.finish().unwrap())
        .iter()
        .map(|event| event.time)
        .collect();
    assert_eq!(read, times.map(Time::Unix));
}

#[test]
fn annotations_keep_their_types_and_their_nesting() {
    let (mut trace, lane) = one_lane(WriterConfig::default());
    trace
        .begin(lane, NOON, "span", |event| {
            event.annotate("bool", true).annotate("int", -3_i64);
            event.annotate("uint", u64::MAX).annotate("double", f64::INFINITY);
            event.annotate("text", "bf16").annotate("again", "bf16");
            event.annotations().list("list", |list| {
                list.push(1_i64);
                list.map(|map| map.add("k", "v"));
                list.list(|_| {});
            });
        })
        .unwrap();
    let data = AnnotationData::List(vec![
        AnnotationData::Int(1),
        AnnotationData::Map(vec![("k".into(), AnnotationData::Text("v".into()))]),
        AnnotationData::Empty,
    ]);
    let expected = [
        ("bool", AnnotationData::Bool(true)),
        ("int", AnnotationData::Int(-3)),
        ("uint", AnnotationData::Uint(u64::MAX)),
        ("double", AnnotationData::Double(f64::INFINITY)),
        ("text", AnnotationData::Text("bf16".into())),
        ("again", AnnotationData::Text("bf16".into())),
        ("list", data),
    ];
    let read = events(&trace.finish().unwrap()).remove(0);
    assert_eq!(
        read.annotations,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
}

#[test]
fn clearing_the_interned_state_does_not_change_the_events() {
    let write = |clear_every_bytes| {
        let config = WriterConfig {
            clear_every_bytes,
            ..WriterConfig::default()
        };
        let (mut trace, lane) = one_lane(config);
        for step in 0..50_i64 {
            let start = NOON + step as u64 * 1000;
            trace
                .begin(lane, start, "step", |event| {
                    event
                        .category("train")
                        .annotate("train.step", step)
                        .flow(step as u64);
                })
                .unwrap();
            trace.end(lane, start + 999).unwrap();
        }
        trace.finish().unwrap()
    };
    let (seldom, often) = (write(usize::MAX), write(100));
    assert!(seldom.len() < often.len());
    assert_eq!(events(&seldom), events(&often));
}

#[test]
fn span_with_five_attributes_takes_at_most_seventy_bytes() {
    let (mut trace, lane) = one_lane(WriterConfig::default());
    let before = trace.bytes();
    for step in 0..1000_u64 {
        let start = NOON + step * 2_000_000;
        trace
            .begin(lane, start, "perf.forward", |event| {
                event.category("trainer").annotate("train.step", step as i64);
                event.annotate("train.micro_batch", (step % 8) as i64);
                event.annotate("device.id", "0").annotate("perf.clock", "host");
                event.annotate("train.loss", step as f64 / 3.0);
            })
            .unwrap();
        trace.end(lane, start + 1_500_000).unwrap();
    }
    let per_span = (trace.bytes() - before) as f64 / 1000.0;
    assert!(per_span <= 70.0, "{per_span}");
}

#[test]
fn states_are_written_as_slices_unless_native_states_are_configured() {
    let kinds = |states| {
        let config = WriterConfig {
            states,
            ..WriterConfig::default()
        };
        let (mut trace, _) = one_lane(config);
        let process = ProcessTrack(0);
        let phase = trace.state(process, "phase", 0).unwrap();
        for (second, state) in [Some("warmup"), Some("train"), None].into_iter().enumerate() {
            trace.set_state(phase, NOON + second as u64, state).unwrap();
        }
        let kind = |event: &crate::TraceEvent| (event.kind, event.name.clone());
        events(&trace.finish().unwrap())
            .iter()
            .map(kind)
            .collect::<Vec<_>>()
    };
    let named = |kind, name: &str| (kind, name.to_owned());
    assert_eq!(
        kinds(StateStyle::Slices),
        [
            named(EventKind::Begin, "warmup"),
            named(EventKind::End, ""),
            named(EventKind::Begin, "train"),
            named(EventKind::End, ""),
        ]
    );
    assert_eq!(
        kinds(StateStyle::Native),
        [
            named(EventKind::State, "warmup"),
            named(EventKind::State, "train"),
            named(EventKind::State, "")
        ]
    );
}

#[test]
fn tracks_counters_logs_and_trace_attributes_round_trip() {
    let (mut trace, _) = one_lane(WriterConfig::default());
    let process = ProcessTrack(0);
    let thread = trace.thread(process, 9, "loader").unwrap();
    let about = Counter {
        name: "gpu.power",
        unit: CounterUnit::Named("W"),
        description: "power draw",
        scale: None,
    };
    let counter = trace.counter(process, &about).unwrap();
    trace.count(counter, NOON, 250.5).unwrap();
    trace.count(counter, NOON + 1, -3_i64).unwrap();
    let line = LogLine {
        priority: LogPriority::Warn,
        tag: b"trainer",
        message: b"loss is rising",
    };
    trace.log(process, NOON + 2, &line).unwrap();
    trace.trace_attribute("train.run.id", "r").unwrap();
    trace.instant(thread, NOON + 3, "wake", |_| {}).unwrap();
    let read = format!("{:?}", items(&trace.finish().unwrap()));
    for part in [
        r#"Process { pid: 7, name: "rank 0", labels: ["host a"] }"#,
        r#"Thread { pid: 7, tid: 9, name: "loader" }"#,
        r#"Counter { unit: "W" }"#,
        r#"description: "power draw""#,
        "Double(250.5)",
        "Int(-3)",
        r#"time: Unix(1700000000000000002), pid: 7, priority: 5, tag: "trainer", message: "loss is rising""#,
        r#"Attribute("train.run.id", "r")"#,
    ] {
        assert!(read.contains(part), "{part} is missing: {read}");
    }
}

#[test]
fn annotations_of_a_repeated_source_are_encoded_once() {
    let (mut trace, lane) = one_lane(WriterConfig::default());
    let mut asked = 0;
    for source in [&b"one"[..], b"one", b"two", b"four"] {
        let add = |out: &mut Annotations<'_>| {
            asked += 1;
            out.add("length", source.len() as u64);
        };
        trace
            .instant(lane, NOON, "tick", |event| {
                event.annotate_from(source, add);
            })
            .unwrap();
    }
    let read = events(&trace.finish().unwrap());
    let lengths: Vec<_> = read.iter().map(|event| event.annotations[0].1.clone()).collect();
    assert_eq!(lengths, [3, 3, 3, 4].map(AnnotationData::Uint));
    assert_eq!(asked, 3);
}

#[test]
fn repeated_text_is_interned_with_and_without_a_source() {
    let write = |known: bool| {
        let (mut trace, lane) = one_lane(WriterConfig::default());
        for _ in 0..5 {
            trace
                .begin(lane, NOON, "span", |event| {
                    if known {
                        event.annotate_from(b"source", |out| out.add("precision", "bf16"));
                    } else {
                        event.annotate("precision", "bf16");
                    }
                })
                .unwrap();
            trace.end(lane, NOON + 1).unwrap();
        }
        trace.finish().unwrap()
    };
    assert_eq!(write(true), write(false));
}

#[test]
fn trace_begins_with_explicit_process_ordering() {
    let (trace, _) = one_lane(WriterConfig::default());
    // Sequence 1; a descriptor of track 0 with `process_ordering: EXPLICIT`.
    let packet = [0x50, 1, 0xe2, 0x03, 5, 0x08, 0, 0x98, 0x01, 1];
    let bytes = trace.finish().unwrap();
    assert_eq!(bytes[..2], [0x0a, packet.len() as u8]);
    assert_eq!(bytes[2..12], packet);
}

#[test]
fn tracks_of_a_process_share_one_heading_and_keep_their_ranks() {
    let (mut trace, _) = one_lane(WriterConfig::default());
    let process = trace.process(&Process::default()).unwrap();
    trace.state(process, "phase", -1).unwrap();
    trace.group(process, "metrics", 5).unwrap();
    let tracks: Vec<_> = items(&trace.finish().unwrap())
        .into_iter()
        .filter_map(|item| match item {
            Item::Track(track) => Some(track),
            _ => None,
        })
        .collect();
    let headings: Vec<_> = tracks.iter().filter(|track| track.name == HEADING).collect();
    assert_eq!(headings.len(), 2);
    for (name, heading, rank) in [("steps", 0, 0), ("phase", 1, -1), ("metrics", 1, 5)] {
        let track = tracks.iter().find(|track| track.name == name).unwrap();
        assert_eq!((track.parent, track.rank), (Some(headings[heading].uuid), rank));
    }
}

#[test]
fn tracks_beyond_a_limit_share_a_sequence_and_keep_their_events() {
    let mut trace = TraceWriter::new(Vec::new());
    let process = trace.process(&Process::default()).unwrap();
    let lanes: Vec<_> = (0..2 * OWN_SEQUENCES as u64)
        .map(|lane| (lane, trace.lane(process, "rows", 0).unwrap()))
        .collect();
    // Each lane begins after all others and ends before them.
    for (number, lane) in &lanes {
        trace
            .begin(*lane, NOON + number, format!("slice {number}"), |event| {
                event.annotate_from(b"same", |out| out.add("text", "bf16"));
            })
            .unwrap();
    }
    for (number, lane) in lanes.iter().rev() {
        trace.end(*lane, NOON + 10_000 - number).unwrap();
    }
    let bytes = trace.finish().unwrap();
    let packets = Fields::new(&bytes).map(Result::unwrap);
    let sequences: HashSet<u64> = packets
        .flat_map(|(_, packet)| match packet {
            FieldValue::Bytes(packet) => Fields::new(packet).map(Result::unwrap).collect(),
            _ => Vec::new(),
        })
        .filter(|(field, _)| *field == packet::SEQUENCE_ID)
        .map(|(_, value)| value.number())
        .collect();
    // The descriptors have one sequence, and the tracks beyond the limit share one.
    assert_eq!(sequences.len(), OWN_SEQUENCES + 2);

    let mut begun = HashMap::new();
    let mut ended = 0;
    for event in events(&bytes) {
        match event.kind {
            EventKind::Begin => {
                assert_eq!(event.annotations.len(), 1);
                assert!(begun.insert(event.track_uuid, event).is_none());
            }
            _ => {
                let (Time::Unix(start), Time::Unix(end)) = (begun[&event.track_uuid].time, event.time) else {
                    panic!("a time of another clock");
                };
                assert_eq!(begun[&event.track_uuid].name, format!("slice {}", start - NOON));
                assert_eq!(end - NOON, 10_000 - (start - NOON));
                ended += 1;
            }
        }
    }
    assert_eq!((begun.len(), ended), (lanes.len(), lanes.len()));
}
