//! Tunix's Perfetto traces as a user processes them: imported and converted, queried in a real Tempo and a real Jaeger, and
//! converted back to Perfetto traces.

use std::{collections::BTreeSet, fs, path::PathBuf};

use pulsetrain_tests::{
    Finished, Folder, Import, Items, Jaeger, Judge, Tempo, TraceProcessor, command, corpus,
    otlp::{self, time},
    send_traces, some_or_return, wait_until,
};
use serde_json::{Value, json};

const TRACES: [&str; 4] = [
    "colocated/trace/perfetto_trace_1795219880.pb",
    "colocated/trace/perfetto_trace_v2_1795219880.pb",
    "rollout1_actor2/trace/perfetto_trace_1795219968.pb",
    "rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
];

fn sample(name: &str) -> PathBuf {
    corpus(&format!("tunix/{name}"))
}

fn convert(arguments: &[&str]) -> Finished {
    Finished::run(command(["convert"]).args(arguments))
}

fn text(path: &std::path::Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

#[test]
fn import_and_convert_of_a_tunix_trace_agree_and_are_repeatable() {
    let folder = Folder::new();
    for name in TRACES {
        let (imported, again) = (folder.path("imported.jsonl"), folder.path("again.jsonl"));
        let summary = Import::new(sample(name))
            .to(&imported)
            .run()
            .expect_code(0)
            .summary();
        let format = if name.contains("_v2_") {
            "tunix-trace-v2"
        } else {
            "tunix-trace"
        };
        assert_eq!(summary["inputs"][0]["format"], format);
        Import::new(sample(name)).to(&again).run().expect_code(0);
        Items::read(&again).assert_same(&Items::read(&imported));
        let (lines, binary) = (folder.path("converted.jsonl"), folder.path("converted.binpb"));
        convert(&[text(&sample(name)), "-o", text(&lines)]).expect_code(0);
        Items::read(&lines).assert_same(&Items::read(&imported));
        convert(&[text(&sample(name)), "-o", text(&binary)]).expect_code(0);
        let back = folder.path("back.jsonl");
        convert(&[text(&binary), "-o", text(&back)]).expect_code(0);
        Items::read(&back).assert_same(&Items::read(&imported));
        Finished::run(command(["semconv", "check"]).arg(&imported)).expect_code(0);
    }
}

/// Returns the ids of the items with their start times.
fn ids(items: &Items) -> BTreeSet<(String, u64)> {
    let spans = items.of_kind("span").into_iter().map(|item| &item["span"]);
    spans
        .map(|span| {
            let ids = format!("{} {} {}", span["traceId"], span["spanId"], span["parentSpanId"]);
            (ids, time(span, "startTimeUnixNano"))
        })
        .collect()
}

#[test]
fn renamed_tunix_trace_requires_the_start_time_and_keeps_its_ids() {
    let folder = Folder::new();
    for name in TRACES {
        let (renamed, named) = (folder.path("run.pftrace"), folder.path("named.jsonl"));
        fs::copy(sample(name), &renamed).expect("the sample can be copied");
        Import::new(sample(name)).to(&named).run().expect_code(0);
        let seconds: u64 = if name.contains("880") {
            1_795_219_880
        } else {
            1_795_219_968
        };
        for (arguments, code, start) in [
            (&[][..], 1, None),
            (
                &["--start-time", "2026-11-21T01:00:00Z"][..],
                0,
                Some(1_795_222_800),
            ),
        ] {
            let (imported, converted) = (folder.path("imported.jsonl"), folder.path("converted.jsonl"));
            let import = Import::new(&renamed).to(&imported);
            let import = arguments
                .iter()
                .fold(import, |import, argument| import.arg(argument));
            let finished = import.run().expect_code(code);
            if code == 1 {
                finished.expect_words(&["--start-time"]);
            }
            let both = [text(&renamed), "-o", text(&converted)];
            let finished = convert(&[&both[..], arguments].concat()).expect_code(code);
            if code == 1 {
                finished.expect_words(&["--start-time"]);
            }
            let reported = ids(&Items::read(&imported));
            assert_eq!(reported, ids(&Items::read(&converted)));
            if let Some(start) = start {
                let later = (start - seconds) * 1_000_000_000;
                let expected = ids(&Items::read(&named));
                let expected: BTreeSet<_> = expected.into_iter().map(|(ids, at)| (ids, at + later)).collect();
                assert_eq!(reported, expected);
            }
        }
    }
}

/// The nesting of the spans equals that of the trace of a step: one thread has one row.
#[test]
fn drawn_tunix_trace_nests_like_its_groups() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (otlp, drawn) = (folder.path("steps.binpb"), folder.path("steps.pftrace"));
    convert(&[text(&sample(TRACES[2])), "-o", text(&otlp)]).expect_code(0);
    convert(&[text(&otlp), "-o", text(&drawn)]).expect_code(0);
    let [depths, rows, unfinished] = judge.query(
        &drawn,
        [
            "select name, depth, count(*) as slices from slice where name != 'resource' \
             and track_id in (select id from track where name = 'timeline Main -- thread 0') \
             group by name, depth order by depth, name",
            "select distinct t.name as name from slice s join track t on t.id = s.track_id \
             where s.name != 'resource' order by t.name",
            "select count(*) as slices from slice where dur < 0",
        ],
    );
    let slices =
        |name: &str, depth: u32, slices: u32| json!({"name": name, "depth": depth, "slices": slices});
    for row in [
        slices("train.step", 0, 8),
        slices("train.mini_batch", 1, 8),
        slices("rl.weight_sync", 1, 8),
        slices("train.micro_batches", 2, 8),
        slices("rl.rollout", 3, 4),
        slices("rl.actor_train_loop", 3, 16),
        slices("rl.actor_train", 4, 16),
    ] {
        assert!(depths.contains(&row), "{row} in {depths:?}");
    }
    assert_eq!(depths.len(), 10);
    let rows: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(
        rows,
        [
            "timeline Actor",
            "timeline Main -- thread 0",
            "timeline Main -- thread 1",
            "timeline Reference",
            "timeline Rollout",
        ]
    );
    assert_eq!(unfinished, [json!({"slices": 0})]);
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    otlp::attribute(span, key)?.as_object()?.values().next()
}

/// Returns the traces of the spans that match, with 32 digits each, sorted.
fn traces(items: &Items, is: impl Fn(&Value) -> bool) -> Vec<String> {
    let spans = items.of_kind("span").into_iter().map(|item| &item["span"]);
    let ids: BTreeSet<_> = spans
        .filter(|span| is(span))
        .filter_map(|span| span["traceId"].as_str().map(str::to_owned))
        .collect();
    ids.into_iter().collect()
}

fn millis(span: &Value) -> f64 {
    (time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano")) as f64 / 1e6
}

fn of_trace(sent: &Items, id: &str) -> usize {
    let spans = sent.of_kind("span");
    spans.iter().filter(|item| item["span"]["traceId"] == id).count()
}

#[test]
fn jaeger_has_the_trace_of_every_step() {
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start(&program);
    for name in [TRACES[2], TRACES[3]] {
        let sent = send_traces(&sample(name), &jaeger.otlp());
        let steps = traces(&sent, |_| true);
        assert_eq!(steps.len(), 8);
        for id in steps {
            let trace = jaeger.trace(&id).expect("Jaeger has the trace");
            assert_eq!(otlp::spans(&trace).count(), of_trace(&sent, &id));
        }
    }
}

#[test]
fn tempo_stores_every_step_trace_and_finds_it_by_step_role_and_duration() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start(&program);
    for name in [TRACES[2], TRACES[3]] {
        let sent = send_traces(&sample(name), &tempo.otlp());
        let steps = traces(&sent, |_| true);
        for id in &steps {
            wait_until("Tempo has the trace", || {
                tempo
                    .trace(id)
                    .is_some_and(|trace| otlp::spans(&trace).count() == of_trace(&sent, id))
            });
        }
        let run = sent.of_kind("span")[0]["resource"].clone();
        let run = attribute(&run, "train.run.id").expect("a resource names its run");
        let of_run = format!("resource.train.run.id = {run}");
        wait_until("the search finds every step", || {
            tempo.search(&format!("{{ {of_run} }}")) == steps
        });
        let is =
            |span: &Value, key: &str, value: &str| attribute(span, key).is_some_and(|found| found == value);
        let third = traces(&sent, |span| is(span, "train.step", "3"));
        assert_eq!(third.len(), 1);
        assert_eq!(
            tempo.search(&format!("{{ {of_run} && span.train.step = 3 }}")),
            third
        );
        let slow = traces(&sent, |span| is(span, "rl.role", "actor") && millis(span) > 40.0);
        assert!(!slow.is_empty() && slow.len() < steps.len(), "{slow:?}");
        assert_eq!(
            tempo.search(&format!(
                "{{ {of_run} && span.rl.role = \"actor\" && duration > 40ms }}"
            )),
            slow
        );
        let long = "name = \"rl.reference_inference\" && span.perf.clock = \"host\" && duration > 1s";
        let first = traces(&sent, |span| {
            span["name"] == "rl.reference_inference" && is(span, "train.step", "0")
        });
        assert_eq!(tempo.search(&format!("{{ {of_run} && {long} }}")), first);
    }
}
