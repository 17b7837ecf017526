//! The telemetry of other exporters, line by line, with the metrics that cover it: every line has an answer, and every metric of
//! an answer is one that the source can send.

use std::{array, fmt::Write};

/// The lines of the other exporters.
const UNION: &str = include_str!("union.txt");

/// The telemetry that the source sends in addition to the rows of its table: the memory of MIG devices, and values that it knows
/// or counts itself.
const OUTSIDE_THE_TABLE: [&str; 10] = [
    "gpu.imex.daemon_state",
    "gpu.imex.domain_state",
    "gpu.info",
    "gpu.metric.unavailable",
    "gpu.mig.instances",
    "gpu.mig.memory.limit",
    "gpu.mig.memory.used",
    "gpu.xid",
    "pulsetrain.source.duration",
    "pulsetrain.source.last_success_time",
];

/// Returns the lines with their answers as Markdown.
pub(crate) fn markdown() -> String {
    let mut out = String::from("| what others export | in NVML or DCGM | here |\n|---|---|---|\n");
    for [thing, place, answer] in lines() {
        let named: Vec<_> = metrics(answer).map(|metric| format!("`{metric}`")).collect();
        let here = if named.is_empty() {
            answer.to_owned()
        } else {
            named.join(", ")
        };
        // Writing into a String cannot fail.
        let _ = writeln!(out, "| {thing} | {place} | {here} |");
    }
    out
}

/// Returns the thing, the place and the answer of each line.
fn lines() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = UNION
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| {
        let mut parts = line.splitn(3, " | ");
        array::from_fn(|_| {
            let part = parts.next().filter(|part| !part.is_empty());
            part.unwrap_or_else(|| panic!("{line:?} is unaccounted for"))
        })
    })
}

/// Returns the metrics of an answer, or nothing if the answer is a reason.
fn metrics(answer: &str) -> impl Iterator<Item = &str> {
    let given = (!answer.starts_with("no: ")).then(|| answer.split(", "));
    given.into_iter().flatten()
}

#[test]
fn every_metric_of_other_exporters_is_covered_or_explained() {
    let lines = lines().count();
    assert!(lines > 75, "only {lines} lines");
}

#[test]
fn every_metric_that_covers_another_exporter_is_emitted() {
    let table = pulsetrain_gpu::nvml::table();
    let sent: Vec<_> = table
        .iter()
        .flat_map(|row| row.also.iter().copied().chain([row.metric]))
        .map(|metric| metric.name)
        .chain(OUTSIDE_THE_TABLE)
        .collect();
    for [thing, _, answer] in lines() {
        for metric in metrics(answer) {
            assert!(
                sent.contains(&metric),
                "{metric}, which covers {thing:?}, is never sent"
            );
        }
    }
}

#[test]
fn every_table_metric_covers_a_metric_of_another_exporter() {
    let named: Vec<_> = lines().flat_map(|[_, _, answer]| metrics(answer)).collect();
    for row in pulsetrain_gpu::nvml::table() {
        assert!(
            named.contains(&row.metric.name),
            "{} covers nothing",
            row.metric.name
        );
    }
}
