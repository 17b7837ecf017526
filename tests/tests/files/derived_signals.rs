//! Derived signals of recorded logs, compared with the values that the trainers themselves show.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use opentelemetry_proto::tonic::metrics::v1::MetricsData;
use prost::Message;
use pulsetrain_derive::{SignalsConfig, SignalsStage};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Stage, clock};
use pulsetrain_tests::{Folder, Import, Items, command, convert, corpus, otlp};
use serde_json::{Value, json};

/// The interval between the two lines of a step in TorchSpec's standard error.
const LINES_APART_NANOS: u64 = 1_000_000;

/// Surogate's console and its training.json are from the same run: the console shows `!` next to a norm, the gap of an
/// evaluation, tokens per second and the speed of light; these are derived from the numbers in the JSON.
#[test]
fn derived_signals_match_the_surogate_console() {
    for (log, console) in [
        ("surogate/training_dense.json", "surogate/console_dense.log"),
        ("surogate/training_moe.json", "surogate/console_moe.log"),
    ] {
        let derived = import_derived(log);
        let console = std::fs::read_to_string(corpus(console)).unwrap();
        let steps: Vec<&str> = console
            .lines()
            .filter(|line| line.starts_with(":: step"))
            .collect();
        assert_eq!(steps.len(), 30);

        let marked = steps.iter().map(|line| line.contains("norm !"));
        let counted = grown(&derived, "grad_norm_spike");
        assert_eq!(counted.len(), 30);
        for (step, (line, (marked, counted))) in steps.iter().zip(marked.zip(counted)).enumerate() {
            assert_eq!(marked, counted, "step {step}: {line}");
        }
        assert!(grown(&derived, "nonfinite").iter().all(|is_odd| !is_odd));

        let rates = derived.values("train.throughput.tokens");
        let lights = derived.values("train.sol");
        let millis = durations(&derived);
        assert_eq!((rates.len(), lights.len(), millis.len()), (30, 30, 30));
        for (line, ((rate, light), millis)) in steps.iter().zip(rates.iter().zip(&lights).zip(millis)) {
            assert!(
                line.contains(&format!("| {:5.1}k tps", rate.1 / 1e3)),
                "{rate:?}: {line}"
            );
            // The console truncates the expected milliseconds to an integer.
            let shown = (light.1 * millis).floor() / millis * 100.0;
            assert!(line.contains(&format!("| sol {shown:4.1}")), "{shown}: {line}");
        }

        let gaps: Vec<String> = derived
            .values("eval.gap")
            .iter()
            .map(|(_, gap)| format!("gap {gap:+.4}"))
            .collect();
        let rates = derived.values("eval.throughput.tokens");
        let evaluations: Vec<&str> = console.lines().filter(|line| line.contains(">> eval")).collect();
        assert_eq!((gaps.len(), rates.len(), evaluations.len()), (3, 3, 3));
        for (line, (gap, rate)) in evaluations.iter().zip(gaps.iter().zip(rates)) {
            assert!(line.contains(gap), "{gap}: {line}");
            assert!(
                line.contains(&format!("{:5.1}k tps", rate.1 / 1e3)),
                "{rate:?}: {line}"
            );
        }
    }
}

/// The importers of TorchSpec's wandb files and of its standard error derive the state of each step by TorchSpec's documented
/// rules.
///
/// In the standard error a step has two lines, a millisecond apart: our state has the time of the first, theirs has the time of
/// the second.
#[test]
fn derived_torchspec_bottleneck_matches_its_own_metrics() {
    for log in ["torchspec/perf.wandb", "torchspec/perf.stderr"] {
        let folder = Folder::new();
        let imported = folder.path("imported.jsonl");
        Import::new(corpus(log)).to(&imported).run().expect_code(0);
        let theirs = Items::read(&imported);
        let ours = derive_without(&imported, "perf.bottleneck");
        let (theirs, ours) = (states(&theirs), states(&ours));
        assert!(theirs.len() > 2, "{log}: the state changes: {theirs:?}");
        let steps = |states: &[(u64, String)]| -> Vec<String> {
            let of_states = states.iter().map(|(_, state)| state.clone());
            of_states.collect()
        };
        assert_eq!(steps(&ours), steps(&theirs), "{log}: {ours:?}, not {theirs:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(
                ours.0.abs_diff(theirs.0) <= LINES_APART_NANOS,
                "{log}: {ours:?}, not {theirs:?}"
            );
        }
    }
}

/// The recorded run of MaxText, compared with Google's calculator on its log (`tests/goodput/maxtext.py`).
///
/// MaxText prints a step during the next one, so its steps are read one step late, and the first two overlap. Our account lacks
/// only the time of the second step.
#[test]
fn maxtext_wall_time_matches_googles_calculator_except_one_step() {
    const SECOND_STEP_SECS: f64 = 0.672;
    let derived = import_derived("maxtext/demo.stderr");
    let answers = std::fs::read_to_string(corpus("../goodput/maxtext.json")).unwrap();
    let answers: Value = serde_json::from_str(&answers).unwrap();
    let productive = answers["productive_seconds"].as_f64().unwrap();
    let startup = answers["badput_seconds"]["program_startup"].as_f64().unwrap();

    let uses = wall_time(&derived);
    let times = || derived_times(&derived, "train.wall_time");
    let wall = times().max().unwrap() - times().min().unwrap();
    let total: f64 = uses.values().sum();
    assert!((total - wall as f64 / 1e9).abs() < 1e-6, "{total} s: {uses:?}");
    // The log ends 2 ms after its last step.
    let missing = productive + startup - total;
    assert!(
        (missing - SECOND_STEP_SECS).abs() < 0.005,
        "{missing} s: {uses:?}"
    );
    let used: Vec<&str> = uses
        .iter()
        .filter(|(_, secs)| **secs > 0.0)
        .map(|(used_for, _)| used_for.as_str())
        .collect();
    assert_eq!(used, ["other/overhead", "productive", "program_startup/overhead"]);
}

#[test]
fn value_present_in_the_log_is_not_derived() {
    // This log contains the speed of light, the tokens per second and the gap.
    let derived = import_derived("surogate/console_dense.log");
    let by_scope = points_by_scope(&derived, "pulsetrain.derive");
    assert!(by_scope.contains_key("train.smoothed.loss"), "{by_scope:?}");
    for given in [
        "train.sol",
        "train.throughput.tokens",
        "eval.gap",
        "train.steps",
        "train.eta",
    ] {
        assert!(!by_scope.contains_key(given), "{given} is in {by_scope:?}");
    }
}

#[test]
fn import_derives_signals_only_on_request() {
    let items = Import::new(corpus("surogate/training_dense.json")).items();
    assert_eq!(points_by_scope(&items, "pulsetrain.derive").len(), 0);
}

#[test]
fn convert_and_import_derive_the_same_signals() {
    for log in ["surogate/training_moe.json", "maxtext/demo.stderr"] {
        let folder = Folder::new();
        let [imported, derived] = ["imported.jsonl", "derived.jsonl"].map(|name| folder.path(name));
        Import::new(corpus(log)).to(&imported).run().expect_code(0);
        convert(&[&imported], &derived, &["--derive"]).expect_code(0);
        let expected = import_derived(log);
        Items::read(&derived).assert_same(&expected);
        convert(&[&imported], &derived, &[]).expect_code(0);
        Items::read(&derived).assert_same(&Items::read(&imported));
    }
}

/// A job writes one file per rank, or one for all ranks: the signals across ranks are the same.
#[test]
fn per_rank_files_derive_the_same_signals_as_one_file() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let underived = folder.file("underived.yaml", "derive: {signals: {enabled: false}}\n");
    let demo = command([
        "demo",
        "--ranks",
        "3",
        "--steps",
        "40",
        "--rate",
        "50",
        "--fault",
        "straggler@10:rank=1",
    ])
    .arg("--config")
    .arg(underived)
    .arg("--to")
    .arg(path("all.jsonl"))
    .stderr(Stdio::null())
    .status();
    assert!(demo.unwrap().success());

    let mut by_rank: BTreeMap<Option<i64>, Vec<Value>> = BTreeMap::new();
    for line in std::fs::read_to_string(path("all.jsonl")).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        for (signal, resources) in message.as_object().unwrap() {
            for resource in resources.as_array().unwrap() {
                let message = json!({ signal: [resource] });
                let rank = otlp::integer(&resource["resource"], "train.rank");
                by_rank.entry(rank).or_default().push(message);
            }
        }
    }
    assert_eq!(
        by_rank.len(),
        4,
        "three ranks, and what is of no rank: {:?}",
        by_rank.keys()
    );
    let mut files = Vec::new();
    for (number, messages) in by_rank.values().enumerate() {
        let lines: Vec<String> = messages.iter().map(Value::to_string).collect();
        files.push(folder.file(&format!("{number}.jsonl"), lines.join("\n")));
    }

    convert(&[path("all.jsonl")], &path("one.jsonl"), &["--derive"]).expect_code(0);
    convert(&files, &path("many.jsonl"), &["--derive"]).expect_code(0);
    let derived = Items::read(&path("many.jsonl"));
    derived.assert_same(&Items::read(&path("one.jsonl")));
    let scores = derived.values("train.straggler.score");
    assert_eq!(scores.len(), 3 * 40);
    let slow = scores.iter().filter(|(_, score)| *score < 0.85).count();
    assert!(
        (25..=35).contains(&slow),
        "one rank is slow from step 10 on: {slow} of {scores:?}"
    );
}

#[test]
fn run_derives_signals_of_its_trainer() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let log = corpus("maxtext/demo.stderr");
    let status = command(["run", "--to"])
        .arg(&out)
        .args(["--", "sh", "-c", "cat \"$0\" >&2"])
        .arg(&log)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let imported = import_derived("maxtext/demo.stderr");
    let ours = Items::read(&out);
    for metric in [
        "train.smoothed.loss",
        "train.smoothed.step_time",
        "train.throughput.tokens",
    ] {
        assert_eq!(ours.values(metric).len(), 12, "{metric}");
        assert_eq!(ours.values(metric), imported.values(metric), "{metric}");
    }
}

/// Returns the wall time in seconds by use.
fn wall_time(items: &Items) -> BTreeMap<String, f64> {
    let mut uses: BTreeMap<String, f64> = BTreeMap::new();
    for item in items.points_of("train.wall_time") {
        let secs = item["point"]["asDouble"].as_str();
        let Some(secs) = secs.and_then(|secs| secs.parse::<f64>().ok()) else {
            continue;
        };
        let parts: Vec<&str> = otlp::list(&item["point"]["attributes"])
            .iter()
            .filter_map(|attribute| attribute["value"]["stringValue"].as_str())
            .collect();
        let used = uses.entry(parts.join("/")).or_default();
        *used = used.max(secs);
    }
    uses
}

fn derived_times(items: &Items, metric: &str) -> impl Iterator<Item = u64> {
    items.points_of(metric).into_iter().map(time)
}

fn import_derived(log: &str) -> Items {
    Import::new(corpus(log)).arg("--derive").items()
}

/// Returns, for every step, whether the counter of a type of anomaly increased at its time.
fn grown(items: &Items, kind: &str) -> Vec<bool> {
    let counted: BTreeMap<u64, u64> = items
        .points_of("train.anomalies")
        .into_iter()
        .filter(|item| item["point"]["attributes"][0]["value"]["stringValue"] == kind)
        .map(|item| (time(item), count(item)))
        .collect();
    assert!(!counted.is_empty(), "{kind} is sent with the first step");
    let mut total = 0;
    let steps = items.values("train.global_step");
    let is_grown = |(time, _): &(u64, f64)| {
        let before = total;
        total = counted.get(time).copied().unwrap_or(total);
        total > before
    };
    steps.iter().map(is_grown).collect()
}

/// Returns the duration of every step in milliseconds: the increase of the sum of its histogram.
fn durations(items: &Items) -> Vec<f64> {
    let sums = items.values("train.step.duration");
    let mut before = 0.0;
    let grow = |(_, sum): &(u64, f64)| (sum - std::mem::replace(&mut before, *sum)) * 1e3;
    sums.iter().map(grow).map(f64::round).collect()
}

/// Returns the changes of the bottleneck: the time, and the new state.
fn states(items: &Items) -> Vec<(u64, String)> {
    let mut states: Vec<(u64, String)> = items
        .points_of("perf.bottleneck")
        .into_iter()
        .filter(|item| item["point"]["asInt"] == "1")
        .map(|item| {
            let state = &item["point"]["attributes"][0]["value"]["stringValue"];
            (time(item), state.as_str().expect("a text").to_owned())
        })
        .collect();
    states.sort();
    states.dedup_by(|next, before| next.1 == before.1);
    states
}

/// Returns the derived items of an imported log without one of its metrics.
fn derive_without(imported: &Path, metric: &str) -> Items {
    let mut stage = SignalsStage::new(SignalsConfig::offline());
    let mut out = Vec::new();
    let text = std::fs::read_to_string(imported).expect("an imported log");
    for line in text
        .lines()
        .filter(|line| line.starts_with("{\"resourceMetrics\""))
    {
        let mut data: MetricsData = serde_json::from_str(line).expect("OTLP/JSON");
        for resource in &mut data.resource_metrics {
            for scope in &mut resource.scope_metrics {
                scope.metrics.retain(|of| of.name != metric);
            }
        }
        let batch = Batch::new(Signal::Metrics, 1, data.encode_to_vec());
        let mut passed = Vec::new();
        stage.pass(batch, clock::now(), &mut passed);
        out.extend(passed.split_off(1));
    }
    stage.finish(&mut out);
    let lines: Vec<String> = out
        .iter()
        .filter(|batch| batch.signal() == Signal::Metrics)
        .map(|batch| MetricsData::decode(batch.bytes().clone()).expect("metrics"))
        .map(|data| serde_json::to_string(&data).expect("JSON"))
        .collect();
    Items::parse(&lines.join("\n"))
}

fn points_by_scope(items: &Items, scope: &str) -> BTreeMap<String, usize> {
    let mut points = BTreeMap::new();
    for item in items.of_kind("point") {
        if item["scope"]["name"] == scope {
            let name = item["metric"]["name"].as_str().expect("a name");
            *points.entry(name.to_owned()).or_default() += 1;
        }
    }
    points
}

fn time(item: &Value) -> u64 {
    otlp::time(&item["point"], "timeUnixNano")
}

fn count(item: &Value) -> u64 {
    let count = item["point"]["asInt"].as_str();
    count.and_then(|count| count.parse().ok()).expect("a count")
}
