//! Tunix's Perfetto traces: two runs, each written in both formats and measured by Tunix itself.
//!
//! The expectations are read from the samples packet by packet (`slices`), with none of our parsers.

pub(crate) mod slices;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use self::slices::Slice;
use crate::imported::{Imported, attributes, sample, time};

/// A run of the corpus: its folder, and the time in the names of its traces.
const RUNS: [(&str, u64); 2] = [("colocated", 1_795_219_880), ("rollout1_actor2", 1_795_219_968)];
const STEPS: usize = 8;

/// The names of slices and their expected spans.
const NAMES: [(&str, &str); 15] = [
    ("global_step", "train.step"),
    ("mini_batch_step", "train.mini_batch"),
    ("micro_batch_steps", "train.micro_batches"),
    ("actor_training", "rl.actor_train_loop"),
    ("data_loading", "perf.data"),
    ("rollout", "rl.rollout"),
    ("refer_inference", "rl.reference_inference"),
    ("reference_inference", "rl.reference_inference"),
    ("old_actor_inference", "rl.old_actor_inference"),
    ("advantage_computation", "rl.advantage"),
    ("peft_train_step", "rl.actor_train"),
    ("peft_train", "rl.actor_train"),
    ("weight_sync", "rl.weight_sync"),
    ("environment", "rl.environment"),
    ("queue", "rl.queue"),
];
pub(crate) const GROUPS: [&str; 4] = [
    "global_step",
    "mini_batch_step",
    "micro_batch_steps",
    "actor_training",
];

fn name_of(version: u8, (run, seconds): (&str, u64)) -> String {
    let v2 = if version == 2 { "_v2" } else { "" };
    format!("tunix/{run}/trace/perfetto_trace{v2}_{seconds}.pb")
}

fn imported(version: u8, run: (&str, u64)) -> Imported {
    let format = ["tunix-trace", "tunix-trace-v2"][usize::from(version) - 1];
    let imported = Imported::new(format, &name_of(version, run));
    imported.assert_no_losses();
    assert_eq!(imported.unknown_names(), [""; 0]);
    imported
}

/// The name, the begin and the end of a span.
type SpanSummary = (String, u64, u64);

fn summary(span: &Value) -> SpanSummary {
    let name = span["name"].as_str().expect("a span has a name").to_owned();
    (
        name,
        time(span, "startTimeUnixNano"),
        time(span, "endTimeUnixNano"),
    )
}

fn ours(slice: &Slice) -> &'static str {
    let upstream = slice.name.split(" (").next().expect("a name");
    let known = NAMES.iter().find(|(name, _)| *name == upstream);
    known.unwrap_or_else(|| panic!("{upstream} is not expected")).1
}

#[test]
fn every_slice_becomes_one_span_and_groups_are_deduplicated() {
    for run in RUNS {
        for version in [1, 2] {
            let slices = slices::read(&sample(&name_of(version, run)));
            // Version 1 counts from its clock at the first slice, version 2 from zero.
            let zero = if version == 1 {
                slices.iter().map(|slice| slice.start).min().unwrap()
            } else {
                0
            };
            let wall = |nanos: u64| run.1 * 1_000_000_000 + nanos - zero;
            let mut seen = BTreeSet::new();
            let is_new = |slice: &&Slice| {
                !GROUPS.contains(&slice.name.as_str()) || seen.insert((slice.name.clone(), slice.start))
            };
            let expected = slices.iter().filter(is_new);
            let mut expected: Vec<SpanSummary> = expected
                .map(|slice| (ours(slice).to_owned(), wall(slice.start), wall(slice.end)))
                .collect();
            let imported = imported(version, run);
            let mut found: Vec<SpanSummary> = imported.spans.iter().map(summary).collect();
            expected.sort();
            found.sort();
            assert!(expected.len() > 150 && expected == found, "{run:?} {version}");
            let copies = slices.len() - expected.len();
            let left_out: u64 = imported.skipped.counts().map(|(_, count)| count).sum();
            assert_eq!(left_out, copies as u64, "{run:?} {version}");
        }
    }
}

#[test]
fn each_step_is_one_trace_that_contains_all_parents() {
    for run in RUNS {
        for version in [1, 2] {
            let imported = imported(version, run);
            let mut traces = BTreeMap::<String, BTreeSet<String>>::new();
            let mut ids = BTreeSet::new();
            for span in &imported.spans {
                let step = attributes(span)["train.step"].clone();
                traces
                    .entry(step)
                    .or_default()
                    .insert(span["traceId"].to_string());
                assert!(ids.insert(span["spanId"].to_string()), "an id is there twice");
            }
            let steps: Vec<&str> = traces.keys().map(String::as_str).collect();
            assert_eq!(steps, ["0", "1", "2", "3", "4", "5", "6", "7"]);
            assert!(traces.values().all(|ids| ids.len() == 1));
            for span in imported
                .spans
                .iter()
                .filter(|span| span.get("parentSpanId").is_some())
            {
                let is_parent = |other: &&Value| other["spanId"] == span["parentSpanId"];
                let parent = imported
                    .spans
                    .iter()
                    .find(is_parent)
                    .expect("the parent is there");
                assert_eq!(parent["traceId"], span["traceId"]);
                let (_, start, _) = summary(span);
                let (_, from, to) = summary(parent);
                assert!((from..to).contains(&start), "{span} in {parent}");
            }
        }
    }
}

/// The spans of version 1 from the step inwards, nested as the groups of `tunix/rl/rl_learner.py`.
#[test]
fn groups_contain_the_spans_that_started_in_them() {
    for run in RUNS {
        let imported = imported(1, run);
        let mut found = BTreeMap::<(String, String), usize>::new();
        for span in &imported.spans {
            let parent = imported
                .spans
                .iter()
                .find(|other| other["spanId"] == span["parentSpanId"]);
            let parent = parent.map_or_else(String::new, |parent| summary(parent).0);
            *found.entry((summary(span).0, parent)).or_default() += 1;
        }
        let mut inside = |name: &str, parent: &str| found.remove(&(name.to_owned(), parent.to_owned()));
        assert_eq!(inside("train.step", ""), Some(STEPS));
        assert_eq!(inside("train.mini_batch", "train.step"), Some(STEPS));
        assert_eq!(inside("train.micro_batches", "train.mini_batch"), Some(STEPS));
        assert_eq!(
            inside("rl.actor_train_loop", "train.micro_batches"),
            Some(2 * STEPS)
        );
        assert!(inside("rl.actor_train", "rl.actor_train_loop").unwrap() > 3 * STEPS);
        let syncs = (run.0 != "colocated").then_some(STEPS);
        assert_eq!(inside("rl.weight_sync", "train.step"), syncs);
        for name in [
            "perf.data",
            "rl.rollout",
            "rl.reference_inference",
            "rl.advantage",
        ] {
            assert!(
                inside(name, "train.micro_batches").unwrap() >= 2 * STEPS,
                "{name}"
            );
        }
        assert_eq!(found, BTreeMap::new());
    }
}

/// Names of spans with the step, host or device; each with begin and length in milliseconds.
fn by_step(imported: &Imported, clock: &str) -> BTreeMap<(String, String), Vec<(f64, f64)>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for span in &imported.spans {
        let attributes = attributes(span);
        let (name, start, end) = summary(span);
        if attributes["perf.clock"] == clock {
            let of_step = found.entry((attributes["train.step"].clone(), name)).or_default();
            of_step.push((start as f64 / 1e6, (end - start) as f64 / 1e6));
        }
    }
    found
        .values_mut()
        .for_each(|spans| spans.sort_by(|a, b| a.0.total_cmp(&b.0)));
    found
}

/// Tunix measures both with separate timers. That of version 1 starts just before that of version 2 and stops after it, once a
/// thread waits for the device. The difference is mostly under a millisecond, and up to 70 ms with a busy interpreter.
#[test]
fn host_spans_of_both_trace_versions_agree() {
    for run in RUNS {
        let [first, second] = [1, 2].map(|version| by_step(&imported(version, run), "host"));
        let is_work = |(_, name): &&(String, String)| {
            !name.ends_with("_loop")
                && !["train.step", "train.mini_batch", "train.micro_batches"].contains(&name.as_str())
        };
        let keys: Vec<_> = first.keys().filter(is_work).collect();
        assert_eq!(keys, second.keys().collect::<Vec<_>>(), "{run:?}");
        let (mut differences, mut apart) = (Vec::new(), Vec::new());
        for key in keys {
            assert_eq!(first[key].len(), second[key].len(), "{key:?}");
            for ((start, length), (other_start, other_length)) in first[key].iter().zip(&second[key]) {
                apart.push(other_start - start);
                differences.push(length - other_length);
            }
        }
        apart.sort_by(f64::total_cmp);
        differences.sort_by(f64::total_cmp);
        // The same number of milliseconds lies between the zeros of the two clocks, for every span.
        assert!(apart[apart.len() - 1] - apart[0] < 0.3, "{apart:?}");
        assert!(
            differences[0] > 0.0 && differences[differences.len() - 1] < 70.0,
            "{differences:?}"
        );
        assert!(differences[differences.len() / 2] < 1.0, "{differences:?}");
    }
}

/// Version 1 records a device from when it was free and loses work that ends after the step. Version 2 records it from the
/// call, moves waiting work to a queue, and drops work that was over before the device was free.
#[test]
fn device_spans_of_both_trace_versions_agree_except_known_losses() {
    for (run, lost, dropped) in [(RUNS[0], 1, 0), (RUNS[1], 0, 1)] {
        let [first, second] = [1, 2].map(|version| by_step(&imported(version, run), "block_until_ready"));
        let (mut more, mut fewer) = (0, 0);
        for (key, spans) in first
            .iter()
            .filter(|((_, name), _)| name != "rl.actor_train_loop")
        {
            let others = second.get(key).map_or(0, Vec::len);
            more += others.saturating_sub(spans.len());
            fewer += spans.len().saturating_sub(others);
        }
        assert_eq!((more, fewer), (lost, dropped), "{run:?}");
        let queues: usize = second
            .iter()
            .filter(|((_, name), _)| name == "rl.queue")
            .map(|(_, spans)| spans.len())
            .sum();
        assert_eq!(queues > 0, dropped > 0);
    }
}
