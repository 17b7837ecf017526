//! Compares the times of steps with those that Tunix computed in the same runs (`perf_metrics_export_v1.json`).

use serde_json::Value;

use super::{
    RUNS, STEPS, imported, name_of,
    slices::{self, Slice},
};
use crate::imported::{Imported, sample, sample_text};

/// Returns Tunix's exported metrics of each step of a run.
fn exported(run: &str) -> Vec<Value> {
    let text = sample_text(&format!("tunix/{run}/perf_metrics_export_v1.json"));
    serde_json::from_str(&text).expect("a list of steps")
}

/// Returns our value of an upstream metric in each step.
fn computed(imported: &Imported, upstream: &str) -> Vec<f64> {
    let parts: Vec<&str> = upstream.split('/').collect();
    let (name, statistic) = match parts[..] {
        ["perf", name] => (name, None),
        ["perf", statistic, name] => (name, Some(("perf.statistic", statistic))),
        _ => panic!("{upstream}"),
    };
    imported.values_with(&format!("perf.{name}"), statistic.as_slice())
}

/// Tunix stores times in seconds and truncates them to nanoseconds for the trace, a few times a step.
const NANOSECONDS: f64 = 2e-8;

/// Steps in which the reference model has run ahead. Upstream's formula of the gap is negative in these steps, and right in all
/// others.
const RAN_AHEAD: [(&str, &[usize]); 2] = [("colocated", &[]), ("rollout1_actor2", &[0, 4])];

#[test]
fn step_times_match_tunix_where_its_formula_is_correct() {
    let mut compared = 0;
    for (run, ran_ahead) in RUNS.into_iter().zip(RAN_AHEAD.map(|(_, steps)| steps)) {
        let imported = imported(1, run);
        let steps = exported(run.0);
        assert_eq!(steps.len(), STEPS);
        for (upstream, _) in steps[0].as_object().unwrap() {
            let ours = computed(&imported, upstream);
            assert_eq!(ours.len(), STEPS, "{upstream}");
            for (number, step) in steps.iter().enumerate() {
                let theirs = step[upstream].as_f64().unwrap();
                let is_gap = upstream.ends_with("between_micro_batch_gap_time");
                if is_gap && ran_ahead.contains(&number) {
                    assert!(theirs < 0.0 && ours[number] >= 0.0, "{upstream} of step {number}");
                    continue;
                }
                let apart = (ours[number] - theirs).abs();
                assert!(
                    apart < NANOSECONDS,
                    "{upstream} of step {number}: {} {theirs}",
                    ours[number]
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, STEPS * (10 + 14) - 2 * 2);
}

/// The slices of one name on one track in one step, in order.
fn slices_named<'a>(slices: &'a [Slice], step: usize, track: &str, name: &str) -> Vec<&'a Slice> {
    let is_it = |slice: &&Slice| slice.fragment == step + 1 && slice.track == track && slice.name == name;
    slices.iter().filter(is_it).collect()
}

fn secs(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[test]
fn a_gap_is_the_time_between_two_slices_and_never_negative() {
    for run in RUNS {
        let slices = slices::read(&sample(&name_of(1, run)));
        let imported = imported(1, run);
        for (upstream, track, name) in [
            ("refer_gap_time", "Reference", "refer_inference"),
            ("actor_gap_time", "Actor", "actor_training"),
        ] {
            let (sums, means) = (
                computed(&imported, &format!("perf/sum/{upstream}")),
                computed(&imported, &format!("perf/mean/{upstream}")),
            );
            for step in 0..STEPS {
                let work = slices_named(&slices, step, track, name);
                let gap = |pair: &[&Slice]| pair[1].start.saturating_sub(pair[0].end);
                let expected = secs(work.windows(2).map(gap).sum());
                assert!((sums[step] - expected).abs() < NANOSECONDS, "{upstream}");
                assert!((means[step] - expected / work.len() as f64).abs() < NANOSECONDS);
                // Upstream adds the work before and after the gap.
                let spanned = |pair: &[&Slice]| pair[1].end - pair[0].start;
                assert!(expected < secs(work.windows(2).map(spanned).sum()));
            }
        }
    }
}

#[test]
fn with_the_reference_model_ahead_the_gap_is_the_idle_time_of_the_actor() {
    let run = RUNS[1];
    let slices = slices::read(&sample(&name_of(1, run)));
    let sums = computed(&imported(1, run), "perf/sum/between_micro_batch_gap_time");
    for &step in RAN_AHEAD[1].1 {
        let loops = slices_named(&slices, step, "Actor", "actor_training");
        assert_eq!(loops.len(), 2);
        let references = slices_named(&slices, step, "Reference", "refer_inference");
        assert!(references.iter().all(|reference| reference.start < loops[0].end));
        let expected = secs(loops[1].start - loops[0].end);
        assert!((sums[step] - expected).abs() < NANOSECONDS, "step {step}");
    }
}

/// The versions observe a device from different threads, and version 2 stops its timers a little earlier.
#[test]
fn version_two_traces_yield_the_same_times_as_version_one() {
    for run in RUNS {
        let [first, second] = [1, 2].map(|version| imported(version, run));
        for upstream in [
            "perf/sum/rollout_time",
            "perf/sum/refer_inference_time",
            "perf/sum/actor_train_step_time",
            "perf/rollout_idle_time",
        ] {
            // Without groups the end of a step without new weights is unknown.
            if upstream.ends_with("idle_time") && run.0 == "colocated" {
                assert_eq!(computed(&second, upstream).len(), 0);
                continue;
            }
            let [ours, theirs] = [&first, &second].map(|imported| computed(imported, upstream));
            assert_eq!((ours.len(), theirs.len()), (STEPS, STEPS), "{upstream}");
            for (one, other) in ours.iter().zip(&theirs) {
                assert!((one - other).abs() < 0.08, "{upstream}: {one} {other}");
            }
        }
        let synced = computed(&second, "perf/weight_sync_time");
        let [expected, skipped] = [synced.len(), STEPS - synced.len()];
        assert!(expected == 0 || skipped == 0);
        for (one, other) in computed(&first, "perf/weight_sync_time").iter().zip(&synced) {
            assert!((one - other).abs() < 0.002, "{one} {other}");
        }
    }
}
