//! Event files, wandb files and traces.

use std::collections::BTreeSet;

use crate::{
    expected::ExpectedLog,
    tunix_trace::{GROUPS, slices},
    upstream::{self, Scalar, Wire},
};

/// The rule that leaves a number of an event file out, if one does.
fn left_out(scalar: &Scalar) -> Option<&'static str> {
    if scalar.tag.starts_with("jax/core/compile/") {
        return Some("jax_time_of_day");
    }
    let is_step_scalar = ["train/step", "train/global_step", "inference/step"].contains(&scalar.tag.as_str());
    (is_step_scalar && scalar.value == scalar.step as f64).then_some("step_again")
}

/// An event file of TensorBoard. A step is recorded with its first number. Writers of one file may count separately.
pub(crate) fn event_file(bytes: &[u8]) -> ExpectedLog {
    let file = upstream::event_file(bytes);
    let mut expected = ExpectedLog {
        events: file.texts.len(),
        ..ExpectedLog::default()
    };
    for scalar in &file.scalars {
        expected.time = Some(scalar.time);
        match left_out(scalar) {
            Some(rule) => expected.leave_out(rule),
            None => expected.number(&scalar.tag, scalar.value),
        }
        let step = scalar.step as f64;
        let is_new = expected.steps.last().is_none_or(|last| step > *last);
        if is_new && left_out(scalar) != Some("jax_time_of_day") {
            expected.steps.push(step);
        }
    }
    expected
}

/// The numbers of the fields of wandb's `Record`.
const HISTORY: u64 = 2;
const SUMMARY: u64 = 3;
const STATS: u64 = 7;
const OUTPUT: u64 = 13;
const RUN: u64 = 17;
const ENVIRONMENT: u64 = 26;
/// The fields of `RunRecord` with labels of the run.
const SORTING: [u64; 5] = [6, 7, 9, 10, 12];

/// An offline file of wandb.
pub(crate) fn wandb(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for record in upstream::wandb_records(bytes) {
        for (field, value) in upstream::fields(&record) {
            let Wire::Bytes(message) = value else { continue };
            match field {
                HISTORY => history(&upstream::items(message, 1), &mut expected),
                SUMMARY => {
                    for (key, _) in upstream::items(message, 1) {
                        let rule = if key.starts_with('_') {
                            "wandb_clock"
                        } else {
                            "wandb_summary"
                        };
                        expected.leave_out(rule);
                    }
                }
                STATS => {
                    expected.time = None;
                    for (key, json) in upstream::items(message, 3) {
                        expected.number(key, json.parse().expect("a number"));
                    }
                }
                OUTPUT => expected.leave_out("console_output"),
                RUN => {
                    let sorting = upstream::fields(message);
                    expected.events += sorting
                        .iter()
                        .filter(|(number, _)| SORTING.contains(number))
                        .count();
                    let mut parts = sorting.into_iter();
                    let config = parts.find(|(number, _)| *number == 4);
                    let config = config.expect("a run has a configuration").1;
                    for (key, _) in upstream::items(config.bytes(), 1) {
                        if key.starts_with("_wandb") {
                            expected.leave_out("wandb_bookkeeping");
                        } else {
                            expected.events += 1;
                        }
                    }
                }
                ENVIRONMENT => expected.events += 1,
                // The number of the record itself is not a value.
                1 | 16 | 200 => {}
                _ => expected.leave_out("wandb_bookkeeping"),
            }
        }
    }
    expected
}

fn history(items: &[(String, String)], expected: &mut ExpectedLog) {
    let number = |key: &str| {
        let found = items.iter().find(|(found, _)| found == key);
        found.map(|(_, json)| json.trim_matches('"').parse::<f64>().expect("a number"))
    };
    expected.time = number("_timestamp").map(|secs| (secs * 1e9) as u64);
    expected.steps.extend(number("train/step"));
    for (key, _) in items {
        match key.as_str() {
            key if key.starts_with('_') => expected.leave_out("wandb_clock"),
            "train/step" | "train/global_step" | "inference/step" => expected.leave_out("step_again"),
            key => expected.number(key, number(key).expect("it is there")),
        }
    }
}

/// A trace of Tunix: a slice is a span; a group is on all timelines at once and one span.
pub(crate) fn trace(bytes: &[u8]) -> ExpectedLog {
    let (mut expected, mut seen) = (ExpectedLog::default(), BTreeSet::new());
    for slice in slices::read(bytes) {
        let is_group = GROUPS.contains(&slice.name.as_str());
        if is_group && !seen.insert((slice.name, slice.start)) {
            expected.leave_out("group_of_another_timeline");
        } else {
            expected.spans += 1;
        }
    }
    expected
}
