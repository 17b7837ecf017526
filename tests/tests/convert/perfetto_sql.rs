//! The views for trace_processor in `exporter/convert/sql`, on a simulated job and on a trace with failures.

use std::{collections::BTreeMap, fs, path::Path};

use pulsetrain_tests::{Folder, TraceProcessor, command, convert, corpus};
use serde_json::Value;

const RANKS: usize = 4;
const STEPS: usize = 20;

fn views() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exporter/convert/sql/pulsetrain/training.sql");
    fs::read_to_string(path).expect("the views can be read")
}

/// trace_processor prints numbers that JavaScript cannot hold as text.
fn number(value: &Value) -> i64 {
    let text = value
        .as_str()
        .map(str::to_owned)
        .unwrap_or_else(|| value.to_string());
    text.parse().expect("a number")
}

#[test]
fn steps_slowest_ranks_and_the_critical_path_of_a_job_are_views() {
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let folder = Folder::new();
    let (job, trace) = (folder.path("job"), folder.path("job.pftrace"));
    let [ranks, steps] = [RANKS, STEPS].map(|count| count.to_string());
    let demo = command([
        "demo", "--ranks", &ranks, "--steps", &steps, "--rate", "50", "--seed", "3",
    ])
    .args(["--listen", "127.0.0.1:0", "--out"])
    .arg(&job)
    .output()
    .expect("pulsetrain can be started");
    assert!(demo.status.success(), "{demo:?}");
    convert(&[&job.join("telemetry.binpb")], &trace, &[]).expect_code(0);
    let views = views();
    let [_, steps, slowest, path, foreign, of_trace] = judge.query(
        &trace,
        [
            &views,
            "select step, rank, dur from pulsetrain_step",
            "select step, rank, dur, ranks, behind_median_ns from pulsetrain_slowest_rank",
            "select step, sum(share) as share, count() as spans from pulsetrain_critical_path group by step",
            "select name from pulsetrain_span where name not like 'train.%' and name not like 'perf.%' and name not like 'run.%'",
            "select name, process from pulsetrain_trace((select trace_id from pulsetrain_span where name = 'train.step' \
             and step = 5 and trace_id is not null limit 1)) where name = 'train.step'",
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
            number(&row["behind_median_ns"]),
            of_step[RANKS - 1] - of_step[(RANKS - 1) / 2],
            "{row}"
        );
    }
    assert_eq!(path.len(), STEPS);
    for row in &path {
        let share = row["share"].as_f64().expect("a share");
        assert!((0.5..=1.001).contains(&share), "{row}");
        assert!(number(&row["spans"]) >= 4, "{row}");
    }
    assert_eq!(foreign, [Value::Null; 0], "states are no spans");
    assert_eq!(of_trace.len(), RANKS, "{of_trace:?}");
}

#[test]
fn failed_spans_and_spans_without_a_scope_are_in_the_views() {
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let folder = Folder::new();
    let trace = folder.path("rich.pftrace");
    convert(&[&corpus("perfetto/rich.json")], &trace, &[]).expect_code(0);
    let views = views();
    let [_, errors, spans] = judge.query(
        &trace,
        [
            &views,
            "select process, message from pulsetrain_error",
            "select name from pulsetrain_span where name in ('rl.rollout', 'perf.forward') order by name",
        ],
    );
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0]["message"], "diverged");
    let names: Vec<&Value> = spans.iter().map(|row| &row["name"]).collect();
    assert_eq!(names, ["perf.forward", "rl.rollout"]);
}
