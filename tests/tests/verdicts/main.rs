//! Verdicts on the simulated job: every fault gets the correct verdict, for the correct subject, in time, until the fault has
//! ended; a healthy day gets none.
//!
//! The job's telemetry passes through the stage that derives signals, in simulated time; see `job`.

mod job;

use std::time::Duration;

use job::{Finished, Job, Verdict};
use pulsetrain_demo::{DemoConfig, Fault, FaultRow, Subject, Workload};

/// Returns the maximum delay of a verdict after the start of its fault, in steps and in seconds; the later one counts. A step
/// is closed when the next one ends.
fn stated_delay(verdict: &str) -> (i64, u64) {
    match verdict {
        "nonfinite_loss" | "grad_norm_spike" => (1, 0),
        "loss_spike" => (5, 0),
        "straggler" | "data_starved" | "inference_bound" => (20, 0),
        "gpu_throttled" => (0, 60),
        "gpu_xid" => (0, 17),
        // Including the interval of the readings.
        "gpu_lost" => (0, 7),
        "stalled" | "collective_hang" => (0, 36),
        // From the start of the save.
        "checkpoint_slow" => (0, 13),
        "memory_leak" => (160, 0),
        "telemetry_lost" => (21, 12),
        _ => panic!("no delay is stated for {verdict}"),
    }
}

/// Returns the maximum delay of the end of a verdict after the end of its fault, in steps and in seconds; the later one counts.
fn stated_end(verdict: &str) -> (i64, u64) {
    match verdict {
        "grad_norm_spike" | "loss_spike" => (12, 0),
        "straggler" | "data_starved" | "inference_bound" => (20, 0),
        // Including the time in which the GPU cools down.
        "gpu_throttled" => (0, 75),
        // From the error itself.
        "gpu_xid" => (0, 305),
        // Including the interval of the readings.
        "gpu_lost" => (0, 7),
        "stalled" | "collective_hang" => (2, 5),
        // The next save: the trainer saves every 50 steps.
        "checkpoint_slow" => (52, 0),
        "memory_leak" => (148, 0),
        "telemetry_lost" => (2, 0),
        // Lasts until the end of the job.
        "nonfinite_loss" => (i64::MAX, 0),
        _ => panic!("no end is stated for {verdict}"),
    }
}

/// Returns the number of steps that the job continues after the start of a fault, until its verdict has ended.
fn steps_of(fault: &FaultRow, step_time: Duration) -> u64 {
    let lasts = fault.lasts;
    if lasts == 0 {
        return 180;
    }
    let (steps, secs) = fault.verdict.map(stated_end).unwrap_or_default();
    lasts + steps.unsigned_abs() + (secs as f64 / step_time.as_secs_f64()) as u64 + 60
}

fn workload(fault: &FaultRow, seed: u64) -> Workload {
    match fault.workload {
        Some(workload) => workload,
        None if seed % 3 == 2 => Workload::Rl,
        None => Workload::Sft,
    }
}

fn job_with(fault: &'static FaultRow, seed: u64) -> DemoConfig {
    // A fault at the start applies from the first step on.
    let step = if fault.step > 1 {
        fault.step + seed * 7
    } else {
        fault.step
    };
    let step_time = DemoConfig::default().step_time;
    DemoConfig {
        workload: workload(fault, seed),
        ranks: [4, 8, 2][seed as usize % 3],
        steps: step + steps_of(fault, step_time),
        seed,
        // The first seed has the sampling interval of live GPUs.
        gpu_interval: Duration::from_secs(if seed == 0 { 1 } else { 5 }),
        faults: vec![Fault {
            step: Some(step),
            ..Fault::from_row(fault)
        }],
        ..DemoConfig::default()
    }
}

/// Asserts that every fault has its verdict in time, and that there are no others.
fn assert_right(finished: &Finished, what: &str) {
    let opened = finished.opened();
    let with_verdict = || {
        let truths = finished.truths.iter();
        truths.filter_map(|truth| Some((truth, truth.verdict()?)))
    };
    for (truth, kind) in with_verdict() {
        let right: Vec<_> = opened
            .iter()
            .filter(|verdict| verdict.kind == kind && verdict.subject == truth.subject.to_string())
            .collect();
        assert_eq!(right.len(), 1, "{what}: {truth:?} has one verdict of {opened:#?}");
        let (steps, secs) = stated_delay(kind);
        let (seen, start) = (right[0].seen_unix_nanos, truth.start_unix_nanos);
        assert!(seen >= start, "{what}: the verdict comes after the fault");
        let after = seen.saturating_duration_since(start);
        let after_steps = right[0].step.map(|step| step - truth.first_step as i64);
        assert!(
            after <= Duration::from_secs(secs)
                || after_steps.is_some_and(|after| (0..=steps).contains(&after)),
            "{what}: {truth:?} has its verdict {after:?} or {after_steps:?} steps later: {:#?}",
            right[0]
        );
        if let Subject::Gpu { id, rank } = &truth.subject {
            assert_eq!(
                (right[0].gpu.as_ref(), right[0].rank),
                (Some(id), Some(*rank)),
                "{what}"
            );
        }
    }
    assert_eq!(
        opened.len(),
        with_verdict().count(),
        "{what}: nothing else has a verdict: {opened:#?}"
    );
}

/// Asserts that the verdict of every fault that has ended is resolved in time, and that its series is 0.
fn assert_resolved(finished: &Finished, what: &str) {
    let ended = finished
        .truths
        .iter()
        .filter_map(|truth| Some((truth, truth.verdict()?, truth.end_unix_nanos?, truth.last_step?)));
    for (truth, kind, end, last_step) in ended {
        let is_right =
            |verdict: &&Verdict| verdict.kind == kind && verdict.subject == truth.subject.to_string();
        let of_truth: Vec<_> = finished.verdicts.iter().filter(is_right).collect();
        let [_, resolved] = of_truth[..] else {
            panic!("{what}: {truth:?} has a verdict that opens and ends: {of_truth:#?}");
        };
        assert!(!resolved.is_open, "{what}: {of_truth:#?}");
        let (steps, secs) = stated_end(kind);
        let after = resolved.seen_unix_nanos.saturating_duration_since(end);
        let after_steps = resolved.step.map(|step| step - last_step as i64);
        assert!(
            after <= Duration::from_secs(secs) || after_steps.is_some_and(|after| after <= steps),
            "{what}: the verdict of {truth:?} ends {after:?} or {after_steps:?} steps later: {resolved:#?}"
        );
        let kind = format!("{kind:?}");
        let open = finished
            .open_series
            .iter()
            .filter(|(name, _)| name.contains(&kind));
        for (name, value) in open {
            assert_eq!(*value, 0.0, "{what}: {name}");
        }
    }
}

/// Runs a fault with ten seeds: its verdict opens in time, and ends in time after the fault.
fn assert_at_ten_seeds(name: &str) {
    let fault = FaultRow::find(name).expect("a fault of the table");
    for seed in 0..10 {
        let config = job_with(fault, seed);
        let finished = Job::run(&config);
        assert_eq!(finished.truths.len(), 1);
        let what = format!("{name} with seed {seed}");
        assert_right(&finished, &what);
        assert_eq!(
            finished.truths[0].end_unix_nanos.is_some(),
            fault.lasts > 0,
            "{what}"
        );
        assert_resolved(&finished, &what);
    }
}

/// One test for each fault that has a verdict, so that they run in parallel.
macro_rules! faults {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            assert_at_ten_seeds($name);
        })*

        #[test]
        fn every_fault_with_a_verdict_has_a_test() {
            let tested = [$($name),*];
            for row in FaultRow::all().filter(|row| row.verdict.is_some()) {
                assert!(tested.contains(&row.name), "{}", row.name);
            }
        }
    };
}

faults! {
    straggler: "straggler",
    data_starvation: "data-starvation",
    inference_bottleneck: "inference-bottleneck",
    nan_loss: "nan-loss",
    loss_spike: "loss-spike",
    gradient_spike: "gradient-spike",
    thermal_throttle: "thermal-throttle",
    power_brake: "power-brake",
    xid: "xid",
    xid_fatal: "xid-fatal",
    xid_memory: "xid-memory",
    xid_application: "xid-application",
    xid_other: "xid-other",
    gpu_lost: "gpu-lost",
    stalled_run: "stalled-run",
    collective_hang: "collective-hang",
    slow_checkpoint: "slow-checkpoint",
    memory_leak: "memory-leak",
    telemetry_loss: "telemetry-loss",
}

/// Faults that alerts detect by other metrics do not open verdicts.
#[test]
fn other_faults_open_no_verdict() {
    for fault in FaultRow::all().filter(|row| row.verdict.is_none()) {
        for seed in 0..3 {
            let finished = Job::run(&job_with(fault, seed));
            assert_eq!(finished.truths.len(), 1);
            assert_right(&finished, &format!("{} with seed {seed}", fault.name));
        }
    }
}

/// A rank that is slow from the first step on may have more work than the others: it is reported as information, not as a
/// warning.
#[test]
fn straggler_from_the_first_step_on_is_information() {
    const INFO: i32 = 9;
    for seed in 0..10 {
        let config = DemoConfig {
            steps: 120,
            seed,
            gpu_interval: Duration::from_secs(5),
            faults: vec!["straggler@1".parse().expect("a fault of the table")],
            ..DemoConfig::default()
        };
        let finished = Job::run(&config);
        assert_right(&finished, &format!("straggler@1 with seed {seed}"));
        let verdict = &finished.opened()[0];
        assert_eq!(verdict.severity_number, INFO, "{verdict:#?}");
        assert!(verdict.reason.contains("since its first steps"), "{verdict:#?}");
    }
}

#[test]
fn hang_is_detected_at_every_gpu_poll_interval() {
    for millis in [50, 100, 300] {
        let config = DemoConfig {
            steps: 200,
            gpu_interval: Duration::from_millis(millis),
            faults: vec!["collective-hang@60".parse().expect("a fault of the table")],
            ..DemoConfig::default()
        };
        let finished = Job::run(&config);
        assert_right(&finished, &format!("GPUs that are read every {millis} ms"));
    }
}

#[test]
fn consecutive_faults_each_open_a_verdict() {
    let sft = ["straggler", "nan-loss", "collective-hang", "memory-leak", "xid"];
    let mixes: [(&[&str], Workload); 5] = [
        (&["straggler", "data-starvation", "gradient-spike"], Workload::Sft),
        (&["thermal-throttle", "gpu-lost", "telemetry-loss"], Workload::Sft),
        (
            &["stalled-run", "slow-checkpoint", "memory-leak", "straggler"],
            Workload::Sft,
        ),
        (
            &["inference-bottleneck", "straggler", "xid", "gpu-lost"],
            Workload::Rl,
        ),
        (&sft, Workload::Sft),
    ];
    for (seed, (names, workload)) in (20..).zip(mixes) {
        let fault = |(place, name): (u64, &&str)| Fault {
            step: Some(60 + 350 * place),
            ..name.parse().expect("a fault of the table")
        };
        let config = DemoConfig {
            workload,
            // The last fault also ends before the job.
            steps: 350 * names.len() as u64 + 400,
            seed,
            gpu_interval: Duration::from_secs(5),
            faults: (0..).zip(names).map(fault).collect(),
            ..DemoConfig::default()
        };
        let finished = Job::run(&config);
        assert_eq!(finished.truths.len(), names.len());
        assert_right(&finished, &format!("{names:?}"));
        assert_resolved(&finished, &format!("{names:?}"));
    }
}

/// The buckets of the wall time add up to it exactly, through restarts, stalls and checkpoints.
#[test]
fn wall_time_buckets_add_up_to_the_wall_time() {
    let config = DemoConfig {
        steps: 600,
        gpu_interval: Duration::from_secs(5),
        faults: ["stalled-run@120", "gpu-lost@330", "data-starvation@420"]
            .map(|fault| fault.parse().expect("a fault of the table"))
            .into(),
        ..DemoConfig::default()
    };
    let finished = Job::run_with_wall_time(&config);
    let sum: f64 = finished.wall_time.values().sum();
    let off = (sum - finished.wall_secs).abs() / finished.wall_secs;
    assert!(
        off < 0.001,
        "{sum} s of {} s: {:#?}",
        finished.wall_secs,
        finished.wall_time
    );
    let secs = |key: &str| finished.wall_time.get(key).copied().unwrap_or_default();
    let expected = |name: &str, value: f64, key: &str| {
        let got = secs(key);
        assert!(
            (got - value).abs() < 0.15 * value,
            "{name}: {got} s of about {value} s: {:#?}",
            finished.wall_time
        );
    };
    // Steps of half a second: the table of faults has durations in steps; a save has two and an evaluation three.
    expected("stall", 60.0, "stall/idle");
    expected("recovery", 25.0, "infrastructure_recovery_from_disruption/wasted");
    expected(
        "repeated steps",
        29.0 * 0.5,
        "wasted_progress_from_disruption/wasted",
    );
    expected("saves", 12.0, "unproductive_checkpoint_save_time/overhead");
    expected("evaluations", 6.0 * 1.5, "evaluation/overhead");
    expected("data", 0.45 * 180.0, "data_loading_sync/idle");
}

/// Runs a job of a day without a fault.
fn assert_healthy_day(workload: Workload, seed: u64, ranks: u32, step_secs: u64) {
    let config = DemoConfig {
        workload,
        ranks,
        steps: 24 * 3600 / step_secs,
        seed,
        step_time: Duration::from_secs(step_secs),
        gpu_interval: Duration::from_secs(60),
        ..DemoConfig::default()
    };
    let finished = Job::run(&config);
    assert_eq!(finished.opened(), [], "{workload} with seed {seed}");
    assert!(finished.wall_secs >= 24.0 * 3600.0);
}

#[test]
fn healthy_day_has_no_verdict() {
    assert_healthy_day(Workload::Sft, 1, 4, 30);
    assert_healthy_day(Workload::Rl, 2, 4, 30);
}

/// 43,200 steps. Two ranks, so that the test takes less than a minute without optimization.
#[test]
fn healthy_day_of_short_steps_has_no_verdict() {
    assert_healthy_day(Workload::Sft, 3, 2, 2);
}
