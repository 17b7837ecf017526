//! The Perfetto writer, checked by trace_processor, which must find exactly the written content, without errors.

use pulsetrain_perfetto::{
    Counter, CounterUnit, GroupTrack, LogLine, LogPriority, Process, ProcessTrack, StateStyle, TraceWriter,
    WriterConfig,
};
use pulsetrain_tests::{Folder, Items, TraceProcessor, convert};
use serde_json::{Value, json};

const NOON: u64 = 1_700_000_000_000_000_123;

struct Written {
    trace: TraceWriter<Vec<u8>>,
    process: ProcessTrack,
    group: GroupTrack,
}

/// Writes a trace with one process and one heading, whose incremental state is reset after every few events.
fn written() -> Written {
    let config = WriterConfig {
        clear_every_bytes: 150,
        ..WriterConfig::default()
    };
    let mut trace = TraceWriter::with_config(Vec::new(), config);
    let about = Process {
        pid: 7,
        name: "rank 3 trainer",
        labels: &["host a"],
        rank: 3,
    };
    let process = trace.process(&about).expect("writing into memory does not fail");
    let group = trace
        .group(process, "steps", 0)
        .expect("writing into memory does not fail");
    Written {
        trace,
        process,
        group,
    }
}

fn judge<const N: usize>(trace: TraceWriter<Vec<u8>>, queries: [&str; N]) -> Option<[Vec<Value>; N]> {
    let judge = TraceProcessor::require_or_skip()?;
    let folder = Folder::new();
    let bytes = trace.finish().expect("writing into memory does not fail");
    let file = folder.file("written.pftrace", bytes);
    Some(judge.query(&file, queries))
}

#[test]
fn slices_keep_their_times_their_nesting_and_their_arguments() {
    let Written { mut trace, group, .. } = written();
    let lane = trace.lane(group, "steps", 0).unwrap();
    trace
        .begin(lane, NOON, "train.step", |event| {
            event.category("trainer").annotate("train.step", -4_i64);
            event.annotate("text", "bf16").annotate("same", "bf16");
            event.annotate("big", u64::from(u32::MAX)).annotate("on", true);
            event.annotate("loss", 2.5);
            event.annotations().list("xs", |list| list.push("first"));
            event.annotations().map("m", |map| map.add("k", "v"));
        })
        .unwrap();
    for index in 0..20 {
        trace.begin(lane, NOON + index * 10, "child", |_| {}).unwrap();
        trace.end(lane, NOON + (index + 1) * 10).unwrap();
    }
    trace.end(lane, NOON + 200).unwrap();
    let Some([slices, arguments, tracks]) = judge(
        trace,
        [
            "select s.ts, s.dur, s.depth, s.name, s.category, p.name as parent from slice s left join slice p on p.id = s.parent_id order by s.id limit 3",
            "select key, value_type, display_value from args join slice using (arg_set_id) where slice.name = 'train.step' order by key",
            "select p.name as process, p.pid, count(*) as slices from slice join process_track t on t.id = slice.track_id join process p using (upid) group by 1",
        ],
    ) else {
        return;
    };
    // Numbers that JSON parsers would round are strings.
    let at = |nanos: u64| nanos.to_string();
    assert_eq!(
        slices,
        [
            json!({"ts": at(NOON), "dur": 200, "depth": 0, "name": "train.step", "category": "trainer", "parent": null}),
            json!({"ts": at(NOON), "dur": 10, "depth": 1, "name": "child", "category": null, "parent": "train.step"}),
            json!({"ts": at(NOON + 10), "dur": 10, "depth": 1, "name": "child", "category": null, "parent": "train.step"}),
        ]
    );
    // Dots in names are underscores in keys, because a dot denotes a nested key.
    let argument = |key: &str, kind: &str, value: &str| json!({"key": format!("debug.{key}"), "value_type": kind, "display_value": value});
    assert_eq!(
        arguments,
        [
            argument("big", "uint", "4294967295"),
            argument("loss", "real", "2.5"),
            argument("m.k", "string", "v"),
            argument("on", "bool", "true"),
            argument("same", "string", "bf16"),
            argument("text", "string", "bf16"),
            argument("train_step", "int", "-4"),
            argument("xs[0]", "string", "first"),
        ]
    );
    assert_eq!(
        tracks,
        [json!({"process": "rank 3 trainer", "pid": 7, "slices": 21})]
    );
}

#[test]
fn counters_flows_states_logs_and_attributes_are_queryable() {
    let Written {
        mut trace,
        process,
        group,
    } = written();
    let about = Counter {
        name: "gpu.power",
        unit: CounterUnit::Named("W"),
        ..Counter::default()
    };
    let power = trace.counter(group, &about).unwrap();
    for (nanos, value) in [(0, 250.5), (10, f64::INFINITY), (20, -1.0)] {
        trace.count(power, NOON + nanos, value).unwrap();
    }
    for (name, nanos) in [("launch", 0), ("kernel", 50)] {
        let lane = trace.lane(group, name, 0).unwrap();
        trace
            .begin(lane, NOON + nanos, name, |event| {
                event.flow(77);
            })
            .unwrap();
        trace.end(lane, NOON + nanos + 5).unwrap();
    }
    let phase = trace.state(process, "phase", 0).unwrap();
    for (nanos, state) in [(0, Some("warmup")), (30, Some("train")), (90, None)] {
        trace.set_state(phase, NOON + nanos, state).unwrap();
    }
    let line = LogLine {
        priority: LogPriority::Warn,
        tag: b"trainer",
        message: b"loss is rising",
    };
    trace.log(process, NOON + 40, &line).unwrap();
    trace.trace_attribute("train.run.id", "r1").unwrap();
    let Some([counters, flows, states, logs, attributes]) = judge(
        trace,
        [
            "select t.name, t.unit, c.ts, c.value from counter c join counter_track t on t.id = c.track_id where t.name = 'gpu.power' order by c.ts",
            "select o.name as source, i.name as target from flow join slice o on o.id = slice_out join slice i on i.id = slice_in",
            "select s.name, s.dur from slice s join track t on t.id = s.track_id where t.name = 'phase' order by s.ts",
            "select ts, prio, tag, msg from android_logs",
            "select str_value from metadata where name = 'trace_attribute.train.run.id'",
        ],
    ) else {
        return;
    };
    let values: Vec<_> = counters.iter().map(|row| &row["value"]).collect();
    // JSON has no infinity.
    assert_eq!(values, [&json!(250.5), &json!(null), &json!(-1)]);
    assert_eq!(counters[2]["ts"], (NOON + 20).to_string());
    assert_eq!(counters[0]["unit"], "W");
    assert_eq!(flows, [json!({"source": "launch", "target": "kernel"})]);
    assert_eq!(
        states,
        [
            json!({"name": "warmup", "dur": 30}),
            json!({"name": "train", "dur": 60})
        ]
    );
    assert_eq!(
        logs,
        [json!({"ts": (NOON + 40).to_string(), "prio": 5, "tag": "trainer", "msg": "loss is rising"})]
    );
    assert_eq!(attributes, [json!({"str_value": "r1"})]);
}

#[test]
fn native_states_convert_to_spans() {
    let config = WriterConfig {
        states: StateStyle::Native,
        ..WriterConfig::default()
    };
    let mut trace = TraceWriter::with_config(Vec::new(), config);
    let process = Process {
        pid: 7,
        name: "trainer",
        ..Process::default()
    };
    let process = trace.process(&process).unwrap();
    let phase = trace.state(process, "phase", 0).unwrap();
    for (nanos, state) in [(0, Some("warmup")), (30, Some("train")), (90, None)] {
        trace.set_state(phase, NOON + nanos, state).unwrap();
    }
    let folder = Folder::new();
    let file = folder.file("states.pftrace", trace.finish().unwrap());
    let back = folder.path("back.jsonl");
    let summary = convert(&[&file], &back, &[]).expect_code(0).summary();
    let items = Items::read(&back);
    let mut spans: Vec<[String; 3]> = items
        .of_kind("span")
        .iter()
        .map(|item| {
            let field = |key: &str| item["span"][key].to_string().trim_matches('"').to_owned();
            [
                field("startTimeUnixNano"),
                field("endTimeUnixNano"),
                field("name"),
            ]
        })
        .collect();
    spans.sort();
    let span = |begin: u64, end: u64, name: &str| {
        [
            (NOON + begin).to_string(),
            (NOON + end).to_string(),
            name.to_owned(),
        ]
    };
    assert_eq!(spans, [span(0, 30, "warmup"), span(30, 90, "train")], "{summary}");
}

#[test]
fn overlapping_slices_on_thousands_of_lanes_keep_exact_times() {
    let Written { mut trace, group, .. } = written();
    let lanes: Vec<_> = (0..3_000)
        .map(|_| trace.lane(group, "steps", 0).unwrap())
        .collect();
    // Two slices per lane, written lane by lane: the time decreases at every lane.
    for (number, lane) in (0..).zip(lanes) {
        for (start, name) in [(NOON + number, "first"), (NOON + 50_000 + number, "second")] {
            trace.begin(lane, start, name, |_| {}).unwrap();
            trace.begin(lane, start + 1, "child", |_| {}).unwrap();
            trace.end(lane, start + 2).unwrap();
            trace.end(lane, start + 40_000 - number).unwrap();
        }
    }
    let Some([slices, children]) = judge(
        trace,
        [
            "select name, count(*) as slices, count(distinct ts) as starts, sum(dur) as total from slice \
             where depth = 0 group by 1 order by 1",
            "select count(*) as children from slice c join slice p on p.id = c.parent_id \
             where c.name = 'child' and c.ts = p.ts + 1 and c.dur = 1 and c.track_id = p.track_id",
        ],
    ) else {
        return;
    };
    let total = 3_000 * 40_000 - (0..3_000).sum::<u64>();
    let of = |name: &str| json!({"name": name, "slices": 3_000, "starts": 3_000, "total": total});
    assert_eq!(slices, [of("first"), of("second")]);
    assert_eq!(children, [json!({"children": 6_000})]);
}
