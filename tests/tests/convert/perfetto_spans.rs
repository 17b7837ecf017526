//! Random trees of overlapping spans, checked by trace_processor: each span keeps its time and duration, and gets the parent
//! and depth that the rule of lanes defines. This test implements the rule a second time, as simply as possible.

use std::collections::HashMap;

use proptest::{
    collection::vec,
    prelude::*,
    sample::Index,
    test_runner::{Config, TestRunner},
};
use pulsetrain_otlp::{frames::FrameReader, limits::Limits};
use pulsetrain_tests::{Folder, TraceProcessor, some_or_return};
use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoMapper};
use serde_json::{Value, json};

const NOON: u64 = 1_700_000_000_000_000_000;
const FILES: u32 = 8;
const TREES_A_FILE: usize = 1_250;

/// A span of a random tree; times are in a few coarse ticks, so that ties are frequent.
#[derive(Clone, Debug)]
struct Drawn {
    parent: Index,
    start: u64,
    length: u64,
    elsewhere: bool,
    event: Option<u64>,
}

#[derive(Clone, Debug)]
struct Span {
    tree: usize,
    parent: Option<usize>,
    start: u64,
    end: u64,
    process: usize,
    event: Option<u64>,
}

fn tree() -> impl Strategy<Value = Vec<Drawn>> {
    let span = (
        any::<Index>(),
        0..12_u64,
        0..12_u64,
        0..10_u8,
        proptest::option::of(0..24_u64),
    );
    let span = span.prop_map(|(parent, start, length, elsewhere, event)| Drawn {
        parent,
        start,
        length,
        elsewhere: elsewhere == 0,
        event,
    });
    vec(span, 1..9)
}

fn spans(trees: &[Vec<Drawn>]) -> Vec<Span> {
    let mut spans = Vec::<Span>::new();
    for (tree, drawn) in trees.iter().enumerate() {
        // Trees begin close to each other, so that they compete for lanes.
        let begin = NOON + tree as u64 * 5;
        let root = spans.len();
        for (index, one) in drawn.iter().enumerate() {
            let parent = (index > 0).then(|| root + one.parent.index(index));
            let start = parent.map_or(begin, |parent| spans[parent].start) + one.start;
            spans.push(Span {
                tree,
                parent,
                start,
                end: start + one.length,
                process: usize::from(one.elsewhere),
                event: one.event.map(|event| begin + event),
            });
        }
    }
    spans
}

/// Returns the spans as OTLP/JSON, one message per process, children before their parents.
fn otlp(spans: &[Span]) -> String {
    let mut lines = String::new();
    for process in 0..2 {
        let of_process = (0..spans.len())
            .rev()
            .filter(|span| spans[*span].process == process);
        let list: Vec<Value> = of_process.map(|span| span_json(spans, span)).collect();
        let message = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "train.rank", "value": {"intValue": process}}]},
            "scopeSpans": [{"scope": {"name": "test"}, "spans": list}],
        }]});
        lines += &format!("{message}\n");
    }
    lines
}

fn span_json(spans: &[Span], number: usize) -> Value {
    let span = &spans[number];
    let id = |number: usize| format!("{:016x}", number + 1);
    let events = span
        .event
        .map(|time| json!({"name": "event", "timeUnixNano": time.to_string()}));
    json!({
        "traceId": format!("{:032x}", span.tree + 1),
        "spanId": id(number),
        "parentSpanId": span.parent.map_or(String::new(), id),
        "name": "span",
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": [{"key": "n", "value": {"intValue": number}}],
        "events": events.into_iter().collect::<Vec<_>>(),
    })
}

/// The expected slice: time, duration, depth, and the number of the enclosing span.
type Expected = (u64, u64, u64, Option<usize>);

fn expected(spans: &[Span]) -> Vec<Expected> {
    let mut children = HashMap::<usize, Vec<usize>>::new();
    for (number, span) in spans.iter().enumerate() {
        if let Some(parent) = span
            .parent
            .filter(|parent| spans[*parent].process == span.process)
        {
            children.entry(parent).or_default().push(number);
        }
    }
    let mut inside = vec![None; spans.len()];
    for (parent, mut list) in children {
        list.sort_by_key(|child| (spans[*child].start, spans[*child].end, std::cmp::Reverse(*child)));
        let mut free = spans[parent].start;
        for child in list {
            if spans[child].start >= free && spans[child].end <= spans[parent].end {
                inside[child] = Some(parent);
                free = spans[child].end;
            }
        }
    }
    let depth = |mut number: usize| {
        let mut depth = 0;
        while let Some(parent) = inside[number] {
            (number, depth) = (parent, depth + 1);
        }
        depth
    };
    let slice =
        |(number, span): (usize, &Span)| (span.start, span.end - span.start, depth(number), inside[number]);
    spans.iter().enumerate().map(slice).collect()
}

fn slices(judge: &TraceProcessor, otlp: &str, through_files: bool) -> HashMap<usize, Expected> {
    let mut config = PerfettoConfig::default();
    if through_files {
        config.memory_bytes = 1;
    }
    let mut mapper = PerfettoMapper::new(config);
    for frame in FrameReader::new(otlp.as_bytes(), Limits::default()) {
        let frame = frame.expect("the input is OTLP/JSON");
        mapper.add(frame.signal, frame.bytes).expect("the input is OTLP");
    }
    let (trace, summary) = mapper.write(Vec::new()).expect("memory can be written");
    assert_eq!(summary.spilled_bytes > 0, through_files);
    let folder = Folder::new();
    let file = folder.file("spans.pftrace", trace);
    let query = "select s.ts as ts, s.dur as dur, s.depth as depth, extract_arg(s.arg_set_id, 'debug.n') as n, \
                 extract_arg(p.arg_set_id, 'debug.n') as parent \
                 from slice s left join slice p on p.id = s.parent_id where s.name = 'span'";
    let [rows] = judge.query(&file, [query]);
    let number = |value: &Value| match value {
        Value::String(text) => text.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    let slice = |row: &Value| {
        let field = |key: &str| number(&row[key]).unwrap_or_else(|| panic!("no {key} in {row}"));
        let parent = number(&row["parent"]).map(|parent| parent as usize);
        (
            field("n") as usize,
            (field("ts"), field("dur"), field("depth"), parent),
        )
    };
    let count = rows.len();
    let slices: HashMap<usize, Expected> = rows.iter().map(slice).collect();
    assert_eq!(slices.len(), count, "a span is drawn twice");
    slices
}

#[test]
fn ten_thousand_random_trees_keep_their_times_and_their_nesting() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let config = Config {
        cases: FILES / 2,
        max_shrink_iters: 100,
        failure_persistence: None,
        ..Config::default()
    };
    let trees = vec(tree(), TREES_A_FILE);
    // In memory, and with a minimal budget, in which the sweep over time builds each tree.
    for through_files in [false, true] {
        TestRunner::new(config.clone())
            .run(&trees, |trees| {
                let spans = spans(&trees);
                let slices = slices(&judge, &otlp(&spans), through_files);
                prop_assert_eq!(slices.len(), spans.len());
                for (number, expected) in expected(&spans).into_iter().enumerate() {
                    prop_assert_eq!(slices[&number], expected, "span {}: {:?}", number, spans[number]);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
