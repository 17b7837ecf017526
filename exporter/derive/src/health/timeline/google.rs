//! Comparison with Google's ml-goodput-measurement. `tests/goodput` has the entries of its recorder and the
//! results of its calculator, for a job with a restart (`restart`) and for the recorded run of MaxText
//! (`maxtext`).

use std::collections::BTreeMap;

use serde_json::Value;

use pulsetrain_otlp::UnixNanos;

use super::{Interval, RunStep, Timeline, Use};
use crate::health::sample::median;

/// The entries and the results of a job.
macro_rules! job {
    ($name:literal) => {
        (
            include_str!(concat!("../../../../../tests/goodput/", $name, ".jsonl")),
            include_str!(concat!("../../../../../tests/goodput/", $name, ".json")),
        )
    };
}

/// The causes with the same definition in both.
const SAME: [(Use, &str); 9] = [
    (Use::DeviceInitialization, "tpu_initialization"),
    (Use::TrainingPreparation, "training_prep"),
    (Use::ProgramStartup, "program_startup"),
    (Use::CheckpointSave, "unproductive_checkpoint_save_time"),
    (Use::CheckpointRestore, "unproductive_checkpoint_restore_time"),
    (Use::Evaluation, "custom_badput_events/eval_step"),
    (Use::DataWait, "data_loading_sync"),
    (Use::Recovery, "infrastructure_recovery_from_disruption"),
    (Use::Other, "other"),
];

/// Starts and ends of an interval, by the names of the entries.
const INTERVALS: [(&str, Use); 4] = [
    ("tpu_init", Use::DeviceInitialization),
    ("training_prep", Use::TrainingPreparation),
    ("data_loading", Use::DataWait),
    ("custom_badput_event", Use::Evaluation),
];

fn time(entry: &Value, key: &str) -> Option<UnixNanos> {
    let secs = entry.get(key)?.as_f64()?;
    Some(UnixNanos((secs * 1e9).round() as u64))
}

/// Adds the time between the start of a job and its first work, which has no name.
fn add_unnamed(timeline: &mut Timeline, attempt: i64, start: UnixNanos, end: UnixNanos) {
    let used_for = Use::Other;
    timeline.add_interval(Interval {
        used_for,
        attempt,
        start,
        end,
    });
}

/// Adds the entries to an account as spans would: a step lasts until the next one begins.
fn account(entries: &str) -> Timeline {
    let (mut timeline, mut attempt) = (Timeline::new(), -1);
    let mut started = BTreeMap::new();
    let mut step: Option<(i64, UnixNanos)> = None;
    let (mut job, mut end) = (None, None);
    for line in entries.lines() {
        let line: Value = serde_json::from_str(line).expect("an entry");
        let entry = line.get("jsonPayload").expect("a payload");
        if let Some(start) = time(entry, "job_start_time") {
            (attempt, step, job) = (attempt + 1, None, Some(start));
        }
        for (name, used_for) in INTERVALS {
            if let Some(start) = time(entry, &format!("{name}_start_time")) {
                if let Some(job) = job.take() {
                    add_unnamed(&mut timeline, attempt, job, start);
                }
                started.insert(name, start);
            }
            if let Some(end) = time(entry, &format!("{name}_end_time")) {
                let start = started.remove(name).expect("it was started");
                timeline.add_interval(Interval {
                    used_for,
                    attempt,
                    start,
                    end,
                });
            }
        }
        if let Some((job, end)) = job.zip(time(entry, "step_start_time")) {
            add_unnamed(&mut timeline, attempt, job, end);
        }
        let ends_at = time(entry, "step_start_time").or(time(entry, "job_end_time"));
        if let (Some(end), Some((number, start))) = (ends_at, step) {
            let (data_secs, dispatch_secs) = (0.0, 0.0);
            timeline.add_step(RunStep {
                attempt,
                number,
                start,
                covered_start: start,
                end,
                data_secs,
                dispatch_secs,
            });
        }
        if let Some(start) = time(entry, "step_start_time") {
            step = Some((entry["step_count"].as_i64().expect("a step"), start));
            job = None;
        }
        end = end.max(time(entry, "job_end_time"));
    }
    timeline.finish(end.expect("the job ended"));
    timeline
}

/// The seconds of both sides.
struct Answers {
    ours: BTreeMap<Use, f64>,
    theirs: Value,
}

impl Answers {
    fn parse((entries, answers): (&str, &str)) -> Self {
        Self {
            ours: account(entries).totals().collect(),
            theirs: serde_json::from_str(answers).expect("the answers"),
        }
    }

    fn ours(&self, used_for: Use) -> f64 {
        self.ours.get(&used_for).copied().unwrap_or_default()
    }

    fn theirs(&self, cause: &str) -> f64 {
        // A cause exists only if the job has recorded it.
        self.theirs["badput_seconds"][cause].as_f64().unwrap_or_default()
    }

    fn productive(&self) -> f64 {
        self.theirs["productive_seconds"].as_f64().expect("a number")
    }

    fn assert_equal(&self, used_for: Use, cause: &str) {
        let (ours, theirs) = (self.ours(used_for), self.theirs(cause));
        assert_near(cause, ours, theirs);
    }

    fn assert_same_wall_time(&self) {
        let job = self.theirs["job_seconds"].as_f64().expect("a number");
        assert_near("wall time", self.ours.values().sum(), job);
    }
}

fn assert_near(name: &str, ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() < 1e-6, "{name}: {ours} s, not {theirs} s");
}

#[test]
fn goodput_of_a_restarted_job_matches_the_google_library() {
    let answers = Answers::parse(job!("restart"));
    for (used_for, cause) in SAME {
        answers.assert_equal(used_for, cause);
    }
    // Google subtracts the lost steps, and we count the repeated ones. These are the same steps, but Google's
    // have the times of the first attempt, and ours those of the second, whose first step compiles too.
    answers.assert_equal(Use::Repeated, "wasted_progress_from_disruption");
    assert_near("productive", answers.ours(Use::Productive), answers.productive());
    answers.assert_same_wall_time();
}

/// The log of MaxText has no restart and no gaps between its steps. Its first two steps compile, so the only
/// different definition has an effect: the duration of a first step without startup. Google uses the mean of
/// all later steps but the last, which no step follows. We use the median of the next seven.
#[test]
fn goodput_of_the_maxtext_run_matches_google_except_program_startup() {
    let job = job!("maxtext");
    let answers = Answers::parse(job);
    for (used_for, cause) in SAME {
        if used_for != Use::ProgramStartup {
            answers.assert_equal(used_for, cause);
        }
    }
    answers.assert_same_wall_time();
    let startup = answers.theirs("program_startup");
    let ours = (answers.ours(Use::Productive), answers.ours(Use::ProgramStartup));
    assert_near("steps", ours.0 + ours.1, answers.productive() + startup);

    let entries = job
        .0
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an entry"));
    let times = entries.filter_map(|entry| {
        let entry = &entry["jsonPayload"];
        time(entry, "step_start_time").or(time(entry, "job_end_time"))
    });
    let times: Vec<UnixNanos> = times.collect();
    let steps: Vec<f64> = times.windows(2).map(|pair| pair[1].secs_since(pair[0])).collect();
    let (first, rest) = steps.split_first().expect("steps");
    assert_eq!(rest.len(), 11);
    let mean = rest[..10].iter().sum::<f64>() / 10.0;
    assert_near("startup of Google", first - mean, startup);
    let usual = median(rest[..7].iter().copied()).expect("seven steps");
    assert_near("startup of ours", ours.1, first - usual);
}
