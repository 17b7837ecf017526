//! The SQL modules in `exporter/to-perfetto/sql`, on a simulated job, on a trace with failures and on a request to several
//! services.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{
    Finished, Folder, TraceProcessor, command, convert, corpus, otlp::number, some_or_return,
};
use serde_json::{Value, json};

const RANKS: usize = 4;
const STEPS: usize = 20;
const TRAINING: &str = "include perfetto module pulsetrain.training";
const CRITICAL_PATH: &str = "include perfetto module pulsetrain.critical_path";

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../exporter/to-perfetto/sql/pulsetrain")
}

/// Simulates and converts a job.
fn job(folder: &Folder) -> PathBuf {
    let (job, trace) = (folder.path("job"), folder.path("job.pftrace"));
    let [ranks, steps] = [RANKS, STEPS].map(|count| count.to_string());
    let mut demo = command([
        "demo", "--ranks", &ranks, "--steps", &steps, "--rate", "50", "--seed", "3",
    ]);
    Finished::run(demo.args(["--listen", "127.0.0.1:0", "--out"]).arg(&job)).expect_code(0);
    convert(&[&job.join("telemetry.binpb")], &trace, &[]).expect_code(0);
    trace
}

#[test]
fn sql_views_expose_steps_slowest_ranks_and_the_critical_path() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = job(&folder);
    let [_, steps, slowest, path, foreign, of_trace] = judge.query_with_package(
        &package(),
        &trace,
        [
            CRITICAL_PATH,
            "select step, rank, dur from pulsetrain_step",
            "select step, rank, dur, ranks, over_median_ns from pulsetrain_slowest_rank",
            "select step, sum(self_ns) as self_ns, max(iif(level = 0, dur, 0)) as dur, sum(share) as share, count() as spans \
             from pulsetrain_critical_path group by step",
            "select name from pulsetrain_span where name not like 'train.%' and name not like 'perf.%' and name not like 'run.%'",
            "select name, process from pulsetrain_trace((select trace_id from pulsetrain_span where name = 'perf.forward' \
             and step = 5 limit 1)) where name = 'train.step'",
        ],
    );
    assert_eq!(steps.len(), RANKS * STEPS);
    let mut durations = BTreeMap::<i64, Vec<i64>>::new();
    for row in &steps {
        durations
            .entry(number(&row["step"]))
            .or_default()
            .push(number(&row["dur"]));
    }
    assert_eq!(slowest.len(), STEPS);
    for row in &slowest {
        let of_step = durations
            .get_mut(&number(&row["step"]))
            .expect("a step of the job");
        of_step.sort_unstable();
        assert_eq!(number(&row["ranks"]), RANKS as i64);
        assert_eq!(number(&row["dur"]), of_step[RANKS - 1], "{row}");
        assert_eq!(
            number(&row["over_median_ns"]),
            of_step[RANKS - 1] - of_step[(RANKS - 1) / 2],
            "{row}"
        );
    }
    assert_eq!(path.len(), STEPS);
    for row in &path {
        let slowest = durations[&number(&row["step"])][RANKS - 1];
        assert_eq!(
            (number(&row["dur"]), number(&row["self_ns"])),
            (slowest, slowest),
            "{row}"
        );
        assert!(
            (row["share"].as_f64().expect("a share") - 1.0).abs() < 1e-9,
            "{row}"
        );
        assert_eq!(number(&row["spans"]), 5, "the step and its phases: {row}");
    }
    assert_eq!(foreign, [Value::Null; 0], "states are no spans");
    assert_eq!(of_trace.len(), RANKS, "{of_trace:?}");
}

#[test]
fn sql_macros_give_slowest_ranks_durations_and_contents_of_any_spans() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = job(&folder);
    let [_, phases, slowest, durations, within] = judge.query_with_package(
        &package(),
        &trace,
        [
            TRAINING,
            "select step, dur from pulsetrain_span where name = 'perf.forward'",
            "select step, name, dur, ranks from pulsetrain_slowest_rank_of!((select * from pulsetrain_span \
             where name = 'perf.forward'))",
            "select name, spans, total_ns, p50_ns, p90_ns, p99_ns, max_ns from pulsetrain_durations!(pulsetrain_span, name) \
             where name = 'perf.forward'",
            "select name, count() as spans, count(distinct root_id) as roots \
             from pulsetrain_within!((select id from pulsetrain_step where step = 5)) group by name order by name",
        ],
    );
    let mut longest = BTreeMap::<i64, i64>::new();
    let mut all: Vec<i64> = Vec::new();
    for row in &phases {
        let longest = longest.entry(number(&row["step"])).or_default();
        *longest = number(&row["dur"]).max(*longest);
        all.push(number(&row["dur"]));
    }
    let found: BTreeMap<i64, i64> = slowest
        .iter()
        .map(|row| (number(&row["step"]), number(&row["dur"])))
        .collect();
    assert_eq!(found, longest);
    assert!(
        slowest
            .iter()
            .all(|row| row["ranks"] == RANKS && row["name"] == "perf.forward")
    );
    all.sort_unstable();
    let [row] = &durations[..] else {
        panic!("{durations:?}");
    };
    assert_eq!(number(&row["spans"]), all.len() as i64);
    assert_eq!(number(&row["total_ns"]), all.iter().sum::<i64>());
    assert_eq!(number(&row["max_ns"]), all[all.len() - 1]);
    for (quantile, key) in [(0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")] {
        let place = quantile * (all.len() - 1) as f64;
        let (low, high) = (
            all[place.floor() as usize] as f64,
            all[place.ceil() as usize] as f64,
        );
        let value = row[key].as_f64().expect("a duration");
        assert!(
            (low..=high).contains(&value),
            "{key}: {value} is not in {low}..{high}"
        );
    }
    let names = [
        "perf.backward",
        "perf.data",
        "perf.forward",
        "perf.optimizer",
        "train.step",
    ];
    let expected = names.map(|name| json!({"name": name, "spans": RANKS, "roots": RANKS}));
    assert_eq!(within, expected);
}

#[test]
fn failed_spans_and_spans_without_a_scope_are_in_the_views() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("rich.pftrace");
    convert(&[&corpus("perfetto/rich.json")], &trace, &[]).expect_code(0);
    let [_, errors, spans, within, elsewhere] = judge.query_with_package(
        &package(),
        &trace,
        [
            TRAINING,
            "select process, message from pulsetrain_error",
            "select name, kind from pulsetrain_span where name in ('rl.rollout', 'perf.forward') order by name",
            "select name, process, message from pulsetrain_errors_within!(pulsetrain_span)",
            "select name from pulsetrain_errors_within!((select id from pulsetrain_span where name = 'rl.rollout'))",
        ],
    );
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0]["message"], "diverged");
    assert_eq!(
        spans,
        [
            json!({"name": "perf.forward", "kind": null}),
            json!({"name": "rl.rollout", "kind": "consumer"}),
        ]
    );
    assert_eq!(
        within,
        [json!({"name": "train.step", "process": "rank 1 trainer", "message": "diverged"})]
    );
    assert_eq!(elsewhere, [Value::Null; 0]);
}

/// A span of a request: its name, its id, the id of its parent, and its start and end in microseconds.
type Call = (&'static str, u64, u64, u64, u64);

/// A checkout that waits for a cart and then for the slower of two calls, which calls other services.
const REQUEST: [Call; 6] = [
    ("checkout", 1, 0, 0, 100),
    ("cart", 2, 1, 5, 18),
    ("email", 3, 1, 20, 40),
    ("shipping", 4, 1, 20, 90),
    ("quote", 5, 4, 30, 80),
    // It ends together with its parent.
    ("tax", 6, 5, 30, 80),
];

const BEGIN: u64 = 1_795_000_000_000_000_000;

fn request() -> String {
    let spans = REQUEST.map(|(name, id, parent, start, end)| {
        let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": name}}]});
        let span = json!({
            "traceId": format!("{:032x}", 7),
            "spanId": format!("{id:016x}"),
            "parentSpanId": if parent == 0 { String::new() } else { format!("{parent:016x}") },
            "name": name,
            "startTimeUnixNano": (BEGIN + start * 1_000).to_string(),
            "endTimeUnixNano": (BEGIN + end * 1_000).to_string(),
        });
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}).to_string()
    });
    spans.join("\n")
}

/// Returns log records in the middle of the spans of the request, on the rows of the spans.
fn logs_of_request() -> Value {
    let records = REQUEST.map(|(name, id, _, start, end)| {
        json!({
            "traceId": format!("{:032x}", 7),
            "spanId": format!("{id:016x}"),
            "timeUnixNano": (BEGIN + (start + end) * 500).to_string(),
            "body": {"stringValue": format!("log of {name}")},
        })
    });
    json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]})
}

#[test]
fn the_critical_path_of_a_request_follows_its_calls_through_the_services() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("request.pftrace");
    let inputs = [
        folder.file("request.jsonl", request()),
        folder.file("logged.jsonl", format!("{}\n{}", request(), logs_of_request())),
    ];
    for (input, by) in inputs
        .iter()
        .flat_map(|input| ["process", "trace"].map(|by| (input, by)))
    {
        convert(&[input], &trace, &["--by", by]).expect_code(0);
        let [_, path, nested] = judge.query_with_package(
            &package(),
            &trace,
            [
                CRITICAL_PATH,
                "select name, level, self_ns / 1000 as micros from pulsetrain_critical_path_of!((select id from pulsetrain_span \
                 where name = 'checkout')) order by ts, level",
                "select count(*) as logs from slice s \
                 where exists (select 1 from ancestor_slice(s.id) a where s.name = 'log of ' || a.name)",
            ],
        );
        let row =
            |name: &str, level: u64, micros: u64| json!({"name": name, "level": level, "micros": micros});
        let expected = [
            row("checkout", 0, 17),
            row("cart", 1, 13),
            row("shipping", 1, 20),
            row("quote", 2, 0),
            row("tax", 3, 50),
        ];
        assert_eq!(path, expected, "{} --by {by}", input.display());
        let logs = if input == &inputs[1] { REQUEST.len() } else { 0 };
        assert_eq!(nested, [json!({"logs": logs})], "--by {by}");
    }
}

/// Returns the queries of PERFETTO.md, each with its statements.
fn queries_of_the_page() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exporter/to-perfetto/PERFETTO.md");
    let page = fs::read_to_string(page).expect("the page can be read");
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .filter_map(|rest| rest.split("```").next())
        .flat_map(|block| block.split_inclusive(";\n"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn documented_sql_queries_return_results() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (shop, checkout) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/picture/shop.otlp.jsonl"),
        folder.path("shop.pftrace"),
    );
    convert(&[&shop], &checkout, &[]).expect_code(0);
    let queries = queries_of_the_page();
    let queries: [&str; 5] = std::array::from_fn(|place| queries[place].as_str());
    let [_, lost, ..] = judge.query_with_package(&package(), &job(&folder), queries);
    assert!(
        !lost.is_empty(),
        "rank 3 is the slowest in some phase of some step"
    );
    let [_, _, routes, _, path] = judge.query_with_package(&package(), &checkout, queries);
    assert!(
        routes.iter().any(|row| row["route"] == "/api/checkout"),
        "{routes:?}"
    );
    assert_eq!(path[0]["process"], "payment", "{path:?}");
}
