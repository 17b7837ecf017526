//! MaxText: the spans of standard error, and those of the entries that goodput is counted from.

use std::collections::BTreeSet;

use crate::{
    Imported,
    imported::{attributes, time},
};

#[test]
fn a_step_ends_at_the_time_of_its_line() {
    let imported = Imported::new("maxtext", "maxtext/demo.stderr");
    assert_eq!(imported.spans.len(), 12);
    let first = &imported.spans[0];
    assert_eq!(attributes(first)["train.step"], "0");
    // 2026-11-21 00:33:13.624218 UTC, and 2.041 s before.
    assert_eq!(time(first, "endTimeUnixNano"), 1_795_221_193_624_218_000);
    assert_eq!(time(first, "startTimeUnixNano"), 1_795_221_191_583_218_000);
}

/// Steps 3 and 4 are repeated after a slice was lost: a backend would treat two spans with one id as one.
#[test]
fn goodput_spans_have_unique_ids() {
    let imported = Imported::new("maxtext-goodput", "written/goodput_entries.jsonl");
    let ids: BTreeSet<&str> = imported
        .spans
        .iter()
        .filter_map(|span| span["spanId"].as_str())
        .collect();
    assert_eq!((ids.len(), imported.spans.len()), (22, 22));
    let named = |name: &str| imported.spans.iter().filter(|span| span["name"] == name).count();
    let counts = [
        "train.run",
        "run.init",
        "train.step",
        "perf.data",
        "eval.run",
        "perf.stage",
    ]
    .map(named);
    assert_eq!(counts, [1, 2, 6, 9, 1, 3]);
}

/// `gcloud` lists entries newest first, and a sink writes them oldest first.
#[test]
fn goodput_does_not_depend_on_entry_order() {
    let [listed, sunk] = ["json", "jsonl"]
        .map(|ending| Imported::new("maxtext-goodput", &format!("written/goodput_entries.{ending}")));
    assert_eq!(listed.spans, sunk.spans);
    assert_eq!(
        listed.values("train.step.duration"),
        sunk.values("train.step.duration")
    );
    assert!(
        listed.values("train.step.duration").contains(&1.75),
        "3.125 s without 1.25 s and 0.125 s"
    );
}
