//! The effect of each fault on the telemetry, and its ground truth.

use std::{collections::BTreeSet, time::Duration};

use pulsetrain_demo::{DemoConfig, Fault, FaultRow, Subject, Truth, Workload};
use pulsetrain_semconv::{Attribute, Metric, Span, attribute, event, metric, span};

use crate::read::{Point, Sent, SpanItem, sent};

fn run(steps: u64, faults: &[&str]) -> Sent {
    run_of(Workload::Sft, steps, faults)
}

fn run_of(workload: Workload, steps: u64, faults: &[impl AsRef<str>]) -> Sent {
    let parse = |fault: &str| fault.parse::<Fault>().expect("a fault of the table");
    sent(DemoConfig {
        steps,
        workload,
        faults: faults.iter().map(|fault| parse(fault.as_ref())).collect(),
        ..DemoConfig::default()
    })
}

/// The mean duration of a span in some steps of a rank.
fn mean(sent: &Sent, span: &Span, rank: i64, steps: std::ops::Range<u64>) -> f64 {
    let of_steps = sent.spans_of_rank(span, rank);
    let of_steps = of_steps.filter(|span| steps.contains(&span.step()));
    let durations: Vec<f64> = of_steps.map(SpanItem::seconds).collect();
    durations.iter().sum::<f64>() / durations.len() as f64
}

fn only(sent: &Sent) -> &Truth {
    assert_eq!(sent.truth.len(), 1, "{:?}", sent.truth);
    &sent.truth[0]
}

fn values<'a>(sent: &'a Sent, metric: &Metric) -> Vec<&'a Point> {
    sent.points(metric).collect()
}

#[test]
fn straggler_is_slow_and_the_other_ranks_wait_in_backward() {
    let sent = run(300, &["straggler@60:rank=2"]);
    let grows = |span, rank| mean(&sent, span, rank, 60..260) / mean(&sent, span, rank, 10..60);
    assert!((1.4..1.6).contains(&grows(&span::PERF_FORWARD, 2)));
    assert!((0.9..1.1).contains(&grows(&span::PERF_FORWARD, 0)));
    assert!(grows(&span::PERF_BACKWARD, 0) > grows(&span::PERF_BACKWARD, 2) * 1.1);
    let steps = |rank| grows(&span::TRAIN_STEP, rank);
    assert!(steps(0) > 1.3 && (steps(0) - steps(2)).abs() < 0.02);
    let truth = only(&sent);
    assert_eq!(truth.subject, Subject::Rank(2));
    assert_eq!((truth.first_step, truth.last_step), (60, Some(259)));
    let after = mean(&sent, &span::PERF_FORWARD, 2, 260..300);
    assert!((after / mean(&sent, &span::PERF_FORWARD, 2, 10..60) - 1.0).abs() < 0.1);
}

#[test]
fn data_starvation_is_half_of_the_step_on_all_ranks() {
    let sent = run(200, &["data-starvation@60"]);
    for rank in 0..4 {
        let data = mean(&sent, &span::PERF_DATA, rank, 60..200);
        let share = data / mean(&sent, &span::TRAIN_STEP, rank, 60..200);
        assert!((0.4..0.6).contains(&share), "{share}");
    }
    assert_eq!(only(&sent).subject, Subject::Run);
}

#[test]
fn an_inference_bottleneck_empties_the_pool_and_lets_training_wait() {
    let sent = run_of(Workload::Rl, 200, &["inference-bottleneck@60"]);
    let wait = mean(&sent, &span::PERF_DISPATCH_WAIT, 1, 80..200);
    let share = wait / mean(&sent, &span::TRAIN_STEP, 1, 80..200);
    assert!((0.35..0.65).contains(&share), "{share}");
    let last = |metric| values(&sent, metric).last().unwrap().value;
    assert_eq!(last(&metric::PERF_SAMPLE_POOL_SIZE), 0.0);
    assert!(last(&metric::PERF_INFER_CAPACITY) < last(&metric::PERF_TRAIN_CAPACITY));
}

#[test]
fn a_loss_is_nan_from_its_step_on() {
    let sent = run(100, &["nan-loss@60"]);
    for metric in [&metric::TRAIN_LOSS, &metric::TRAIN_GRAD_NORM] {
        let is_nan: Vec<bool> = sent.points(metric).map(|point| point.value.is_nan()).collect();
        assert_eq!(is_nan.len(), 100);
        assert_eq!(is_nan.iter().position(|is| *is), Some(59));
        assert!(is_nan[59..].iter().all(|is| *is));
    }
    assert_eq!(only(&sent).last_step, None, "it lasts");
}

#[test]
fn a_gradient_spike_is_over_after_two_steps() {
    let sent = run(100, &["gradient-spike@60"]);
    let norms = sent.points(&metric::TRAIN_GRAD_NORM).map(|point| point.value);
    let norms: Vec<f64> = norms.collect();
    let before = norms[30..59].iter().copied().fold(0.0, f64::max);
    assert!(norms[59] > 10.0 * before && norms[60] > 10.0 * before);
    assert!(norms[61..].iter().all(|norm| *norm < 2.0 * before));
    assert_eq!(only(&sent).last_step, Some(61));
}

#[test]
fn a_throttled_gpu_is_hot_and_its_rank_slow() {
    let sent = run(200, &["thermal-throttle@60:rank=1"]);
    let truth = only(&sent);
    let Subject::Gpu { id, rank: 1 } = &truth.subject else {
        panic!("{truth:?}")
    };
    let late = |point: &&Point| point.time > truth.start_unix_nanos.saturating_add(Duration::from_secs(20));
    let of_gpu = |metric, own: bool| {
        let of = sent.points(metric).filter(late);
        of.filter(move |point| (point.attribute(&attribute::GPU_ID) == id) == own)
    };
    let (sensor, domain) = (&attribute::GPU_TEMPERATURE_SENSOR, &attribute::GPU_CLOCK_DOMAIN);
    for (metric, series, own, expected) in [
        (
            &metric::GPU_TEMPERATURE,
            (sensor, "gpu"),
            true,
            86.0..f64::INFINITY,
        ),
        (&metric::GPU_TEMPERATURE, (sensor, "gpu"), false, 0.0..75.0),
        (&metric::GPU_CLOCK_FREQUENCY, (domain, "sm"), true, 0.0..1.4e9),
        (&metric::GPU_CLOCK_FREQUENCY, (domain, "sm"), false, 1.9e9..3e9),
    ] {
        let mut points = of_gpu(metric, own).filter(|point| point.attribute(series.0) == series.1);
        let is_expected = points.all(|point| expected.contains(&point.value));
        assert!(is_expected, "{} of the GPU: {own}", metric.name);
    }
    let thermal = |point: &&Point| point.attribute(&attribute::GPU_THROTTLE_REASON) == "hw_thermal_slowdown";
    let total = |own| {
        let times = of_gpu(&metric::GPU_THROTTLE_TIME, own).filter(thermal);
        times.map(|point| point.value).fold(0.0, f64::max)
    };
    assert!(total(true) > 60.0 && total(false) == 0.0);
    let slow = mean(&sent, &span::PERF_FORWARD, 1, 60..200) / mean(&sent, &span::PERF_FORWARD, 0, 60..200);
    assert!((1.4..1.6).contains(&slow), "{slow}");
}

#[test]
fn an_xid_error_is_an_event_and_an_increase_of_its_counter() {
    let sent = run(100, &["xid@60:rank=3"]);
    let Subject::Gpu { id, rank: 3 } = &only(&sent).subject else {
        panic!("{:?}", sent.truth)
    };
    let events: Vec<_> = sent
        .events
        .iter()
        .filter(|(name, _)| name == event::GPU_XID.name)
        .collect();
    assert_eq!(events.len(), 1);
    let (_, attributes) = events[0];
    assert_eq!(&attributes[attribute::GPU_ID.name], id);
    let code = &attributes[attribute::GPU_XID_CODE.name];
    let errors = sent
        .points(&metric::GPU_XID_ERRORS)
        .filter(|point| point.value > 0.0);
    let series: BTreeSet<_> = errors
        .map(|point| {
            let of = |attribute| point.attribute(attribute).to_owned();
            (of(&attribute::GPU_ID), of(&attribute::GPU_XID_CODE))
        })
        .collect();
    assert_eq!(series, BTreeSet::from([(id.clone(), code.clone())]));
}

#[test]
fn a_lost_gpu_ends_its_series_and_its_run_restarts_from_the_last_checkpoint() {
    let sent = run(150, &["gpu-lost@75:rank=1"]);
    let truth = only(&sent);
    let Subject::Gpu { id, rank: 1 } = &truth.subject else {
        panic!("{truth:?}")
    };
    let end = truth.end_unix_nanos.expect("it ends");
    let start = truth.start_unix_nanos.saturating_add(Duration::from_millis(1500));
    let within = |point: &&Point| (start..end).contains(&point.time);
    let of_gpu = |point: &&Point| point.attribute(&attribute::GPU_ID) == id;
    let power = || sent.points(&metric::GPU_POWER).filter(of_gpu);
    assert_eq!(power().filter(within).count(), 0, "a lost GPU gives no reading");
    let mut ended = sent.points.iter().filter(of_gpu).filter(|point| point.is_ended);
    assert!(ended.any(|point| point.metric == metric::GPU_POWER.name));
    let mut faults = sent.points(&metric::GPU_FAULT_ACTIVE).filter(of_gpu);
    assert!(faults.any(|point| point.attribute(&attribute::GPU_FAULT) == "lost" && point.value == 1.0));
    assert_restarted(&sent, truth, 51);
    assert!(power().any(|point| point.time > end));
}

/// Asserts that the run has restarted once, and that its second attempt begins with this step.
fn assert_restarted(sent: &Sent, truth: &Truth, first_step: u64) {
    let of_attempt = |attempt: &'static str| {
        let steps = sent.spans_of_rank(&span::TRAIN_STEP, 0);
        steps.filter(move |span| span.resource[attribute::TRAIN_ATTEMPT.name] == attempt)
    };
    let last_before = of_attempt("0").last().expect("a first attempt");
    assert_eq!(last_before.step() + 1, truth.first_step);
    assert!(last_before.end <= truth.start_unix_nanos);
    let first_after = of_attempt("1").next().expect("a second attempt");
    assert_eq!(first_after.step(), first_step);
    assert!(first_after.start >= truth.end_unix_nanos.expect("it ends"));
    let loads: Vec<_> = sent.spans_of(&span::TRAIN_CHECKPOINT_LOAD).collect();
    assert_eq!(loads.len(), 4);
    assert!(loads.iter().all(|load| load.step() + 1 == first_step));
    assert_eq!(sent.spans_of(&span::RUN_INIT).count(), 8);
    let one = |span: &&SpanItem| span.step() == first_step;
    let steps = sent.spans_of(&span::TRAIN_STEP).filter(one);
    let traces: BTreeSet<_> = steps.map(|span| &span.trace).collect();
    assert_eq!(traces.len(), 2, "an attempt has traces of its own");
}

/// The utilization and the power of all GPUs while the run makes no progress.
fn gpus_during(sent: &Sent, truth: &Truth) -> (Vec<f64>, Vec<f64>) {
    let start = truth.start_unix_nanos;
    let after = |wait| start.saturating_add(wait);
    let within = after(Duration::from_nanos(1))..after(Duration::from_secs(50));
    let of = |metric: &Metric, task: &str| {
        let points = sent.points(metric).filter(|point| within.contains(&point.time));
        let of_task = points.filter(|point| point.attribute(&attribute::GPU_TASK) == task);
        of_task.map(|point| point.value).collect::<Vec<_>>()
    };
    (
        of(&metric::GPU_UTILIZATION, "general"),
        of(&metric::GPU_POWER, ""),
    )
}

#[test]
fn a_stalled_run_ends_no_step_for_a_minute_with_idle_gpus_and_resumes() {
    let sent = run(100, &["stalled-run@60"]);
    let truth = only(&sent);
    let steps: Vec<_> = sent.spans_of_rank(&span::TRAIN_STEP, 0).collect();
    assert_eq!(steps.len(), 100);
    let gap = steps[59].start.secs_since(steps[58].end);
    assert!((50.0..75.0).contains(&gap), "{gap}");
    let [start, end] = [truth.start_unix_nanos, steps[58].end].map(|time| time.0 / 1_000_000_000);
    assert_eq!(start, end);
    let (utilization, power) = gpus_during(&sent, truth);
    assert!(utilization.len() > 150 && utilization.iter().all(|share| *share == 0.0));
    assert!(power.iter().all(|watts| *watts < 100.0));
}

#[test]
fn a_hanging_collective_keeps_gpus_busy_at_low_power_until_the_restart() {
    let sent = run(100, &["collective-hang@60:rank=2"]);
    let truth = only(&sent);
    let (utilization, power) = gpus_during(&sent, truth);
    assert!(utilization.len() > 150 && utilization.iter().all(|share| *share > 0.95));
    assert!(power.iter().all(|watts| (100.0..200.0).contains(watts)));
    assert_restarted(&sent, truth, 51);
}

#[test]
fn one_checkpoint_is_ten_times_as_slow() {
    let sent = run(260, &["slow-checkpoint@120"]);
    let saves = sent.spans_of_rank(&span::TRAIN_CHECKPOINT_SAVE, 0);
    let saves: Vec<f64> = saves.map(SpanItem::seconds).collect();
    assert_eq!(saves.len(), 5);
    for (number, seconds) in saves.iter().enumerate() {
        let times = seconds / saves[0];
        let is_slow = (7.0..13.0).contains(&times);
        assert_eq!(is_slow, number == 2, "checkpoint {number}: {times}");
    }
    assert_eq!((only(&sent).first_step, only(&sent).last_step), (150, Some(150)));
}

#[test]
fn a_leak_grows_step_by_step_on_one_rank() {
    let sent = run(200, &["memory-leak@60:rank=1"]);
    let at = |metric: &Metric, rank, step: usize| {
        let values: Vec<f64> = sent.of_rank(metric, rank).map(|point| point.value).collect();
        values[step - 1]
    };
    for metric in [&metric::MEMORY_FRAMEWORK_ALLOCATED, &metric::MEMORY_HOST_USED] {
        let leaked = at(metric, 1, 199) - at(metric, 1, 59);
        assert!((8e9..11e9).contains(&leaked), "{leaked}");
        assert!((at(metric, 0, 199) - at(metric, 0, 59)).abs() < 1e9);
    }
    assert_eq!(only(&sent).subject, Subject::Rank(1));
}

#[test]
fn a_rank_without_telemetry_is_silent_and_its_gpu_is_not() {
    let sent = run(220, &["telemetry-loss@60:rank=1"]);
    let steps = |rank| {
        let of_rank = sent.spans_of_rank(&span::TRAIN_STEP, rank);
        of_rank.map(SpanItem::step).collect::<Vec<_>>()
    };
    let expected: Vec<u64> = (1..60).chain(180..=220).collect();
    assert_eq!(steps(1), expected);
    assert_eq!(steps(0).len(), 220);
    let truth = only(&sent);
    let within = truth.start_unix_nanos..truth.end_unix_nanos.unwrap();
    let silent = sent.points.iter().filter(|point| within.contains(&point.time));
    let of_rank: BTreeSet<bool> = silent
        .filter(|point| point.rank() == Some(1))
        .map(|point| point.metric.starts_with("gpu."))
        .collect();
    assert_eq!(of_rank, BTreeSet::from([true]));
}

#[test]
fn faults_without_a_step_are_sequential_and_avoid_rank_zero() {
    let sent = run(500, &["straggler", "memory-leak", "telemetry-loss"]);
    let first: Vec<_> = sent.truth.iter().map(|truth| truth.first_step).collect();
    assert_eq!(first, [60, 210, 360]);
    for truth in &sent.truth {
        assert!(matches!(truth.subject, Subject::Rank(1..=3)), "{truth:?}");
    }
}

#[test]
fn every_fault_is_injected_and_its_verdict_is_registered() {
    for row in FaultRow::all() {
        let workload = row.workload.unwrap_or(Workload::Sft);
        let sent = run_of(workload, row.step + 60, &[row.name]);
        assert_eq!(only(&sent).fault, row);
        let pulsetrain_semconv::AttributeKind::Enum(kinds) = attribute::TRAIN_VERDICT_KIND.kind else {
            panic!("an enum")
        };
        let is_registered = row.verdict.is_none_or(|kind| kinds.contains(&kind));
        assert!(is_registered, "{:?}", row.verdict);
    }
}

/// Returns these faults from step 60 on; those of a rank or GPU are on rank 1.
fn together<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: BTreeSet<&str> = names.collect();
    let fault = |name: &str| {
        let has_rank = FaultRow::find(name).expect("a fault of the table").has_rank();
        format!("{name}@60{}", if has_rank { ":rank=1" } else { "" })
    };
    names.into_iter().map(fault).collect()
}

/// Checks the last value of each metric on rank 0 while the faults last, and that the value after them is outside of that range.
fn assert_values(sent: &Sent, cases: &[(&str, &Metric, std::ops::RangeInclusive<f64>)]) {
    let end = sent.truth[0].end_unix_nanos.expect("it ends");
    for (name, metric, during) in cases {
        let last = |is_before: bool| {
            let points = sent
                .of_rank(metric, 0)
                .filter(|point| (point.time <= end) == is_before);
            points.map(|point| point.value).last().expect("a value")
        };
        assert!(during.contains(&last(true)), "{name}: {}", last(true));
        assert!(!during.contains(&last(false)), "{name}: {} after it", last(false));
    }
}

#[test]
fn values_of_training_change_while_their_fault_lasts() {
    let sft = [
        ("vanished-gradients", &metric::TRAIN_GRAD_NORM, 0.0..=0.0),
        ("skipped-steps", &metric::TRAIN_LOSS_SCALE, 1.0..=1.0),
        ("router-collapse", &metric::MOE_EXPERT_UTILIZATION, 0.2..=0.35),
        ("expert-imbalance", &metric::MOE_LOAD_IMBALANCE, 6.0..=6.0),
        ("host-memory-low", &metric::MEMORY_HOST_AVAILABLE, 6e10..=7e10),
    ];
    let rl = [
        ("stale-samples", &metric::RL_STALENESS, 5.0..=10.0),
        ("policy-drift", &metric::RL_KL, 1.5..=3.0),
        ("entropy-collapse", &metric::RL_ENTROPY, 0.0..=0.01),
        ("reward-collapse", &metric::RL_TRAJECTORY_REWARD, 0.0..=0.0),
        (
            "truncated-completions",
            &metric::RL_COMPLETION_CLIP_RATIO,
            0.5..=0.5,
        ),
        (
            "training-bottleneck",
            &metric::PERF_SAMPLE_POOL_SIZE,
            256.0..=256.0,
        ),
    ];
    for (cases, workload) in [(&sft[..], Workload::Sft), (&rl, Workload::Rl)] {
        let faults = together(cases.iter().map(|(name, ..)| *name));
        assert_values(&run_of(workload, 300, &faults), cases);
    }
}

#[test]
fn held_back_checkpoints_resume_after_the_fault() {
    let sent = run(760, &["checkpoints-held-back@60"]);
    let saves = sent.spans_of_rank(&span::TRAIN_CHECKPOINT_SAVE, 0);
    assert_eq!(saves.map(SpanItem::step).collect::<Vec<_>>(), [50, 700, 750]);
}

#[test]
fn a_killed_run_ends_at_its_step() {
    let sent = run(200, &["killed@60"]);
    let steps = sent.spans_of_rank(&span::TRAIN_STEP, 0);
    assert_eq!(steps.map(SpanItem::step).max(), Some(59));
    assert_eq!(only(&sent).last_step, None, "it lasts");
}

#[test]
fn a_missing_rank_sends_nothing_before_its_first_step() {
    let sent = run(260, &["rank-missing:rank=2"]);
    let first = |rank| {
        let spans = sent.spans.iter().filter(|span| span.rank() == rank);
        spans.map(|span| span.start).min().expect("a span")
    };
    assert!(first(2) >= only(&sent).end_unix_nanos.expect("it ends"));
    assert_eq!(first(0), first(1));
}

/// The last value of a series while a fault of rank 1 lasts: of its GPU, or of another one.
fn of_gpu(sent: &Sent, metric: &Metric, (attribute, value): (&Attribute, &str), own: bool) -> f64 {
    let ends = sent.truth.iter().filter_map(|truth| truth.end_unix_nanos);
    let end = ends.max().expect("it ends");
    let Subject::Gpu { id, .. } = &sent.truth[0].subject else {
        panic!("{:?}", sent.truth)
    };
    let points = sent.points(metric).filter(|point| point.time <= end);
    let of_series = points.filter(|point| {
        (point.attribute(&attribute::GPU_ID) == id) == own && point.attribute(attribute) == value
    });
    of_series.map(|point| point.value).last().expect("a value")
}

#[test]
fn gpu_faults_affect_only_their_gpu() {
    let fault = |fault| (&attribute::GPU_FAULT, fault);
    let ecc = |severity| (&attribute::GPU_ECC_SEVERITY, severity);
    let throttled = |reason| (&attribute::GPU_THROTTLE_REASON, reason);
    let reset = (&attribute::GPU_RECOVERY_ACTION, "gpu_reset");
    let link = (&attribute::GPU_LINK_INDEX, "7");
    let current = (&attribute::GPU_LINK_READING, "current");
    let (active, time) = (&metric::GPU_FAULT_ACTIVE, &metric::GPU_THROTTLE_TIME);
    let (ecc_errors, replays) = (&metric::GPU_ECC_ERRORS, &metric::GPU_PCIE_REPLAYS);
    let (width, generation) = (&metric::GPU_PCIE_WIDTH, &metric::GPU_PCIE_GENERATION);
    let power_brake = throttled("hw_power_brake_slowdown");
    let cases = [
        ("row-remap-pending", active, fault("row_remap_pending"), 1.0..=1.0),
        ("row-remap-failed", active, fault("row_remap_failure"), 1.0..=1.0),
        ("fabric-degraded", active, fault("fabric_degraded"), 1.0..=1.0),
        ("recovery-action", &metric::GPU_RECOVERY_ACTION, reset, 1.0..=1.0),
        ("ecc-corrected", ecc_errors, ecc("corrected"), 900.0..=1600.0),
        ("ecc-uncorrected", ecc_errors, ecc("uncorrected"), 2.0..=5.0),
        ("nvlink-down", &metric::GPU_NVLINK_UP, link, 0.0..=0.0),
        ("nvlink-errors", &metric::GPU_NVLINK_ERRORS, link, 30.0..=70.0),
        ("pcie-replays", replays, fault(""), 1800.0..=3200.0),
        ("pcie-downgraded", width, current, 8.0..=8.0),
        ("pcie-downgraded", generation, current, 4.0..=4.0),
        (
            "gpu-memory-full",
            &metric::GPU_MEMORY_USED,
            fault(""),
            84e9..=86e9,
        ),
        ("power-brake", time, power_brake, 100.0..=200.0),
        ("power-cap", time, throttled("sw_power_cap"), 60.0..=160.0),
    ];
    // A GPU under the power brake does not reach its power limit.
    let (capped, others) = cases.split_last().expect("there are cases");
    for cases in [others, std::slice::from_ref(capped)] {
        let faults = together(cases.iter().map(|(name, ..)| *name));
        let sent = run_of(Workload::Sft, 300, &faults);
        for (name, metric, series, sick) in cases {
            let [own, other] = [true, false].map(|own| of_gpu(&sent, metric, *series, own));
            assert!(sick.contains(&own), "{name}: {own}");
            assert!(!sick.contains(&other), "{name}: {other} on another GPU");
        }
    }
}

/// Checks the table of the README. If it is outdated, copy it from the message.
#[test]
fn the_readme_describes_every_fault() {
    let row = |row: &FaultRow| {
        let rank = if row.has_rank() { "[:rank=R]" } else { "" };
        let workload = row.workload.map(|workload| format!(" ({workload})"));
        let workload = workload.unwrap_or_default();
        let lasts = match row.lasts {
            0 => "to the end".to_owned(),
            1 => "1 step".to_owned(),
            steps => format!("{steps} steps"),
        };
        let verdict = row.verdict.map(|verdict| format!("`{verdict}`"));
        let verdict = verdict.unwrap_or_default();
        format!(
            "| `{}{rank}`{workload} | {} | {lasts} | {} | {verdict} |\n",
            row.name, row.step, row.shows
        )
    };
    let table: String = FaultRow::all().map(row).collect();
    let readme = include_str!("../../README.md");
    assert!(
        readme.contains(&table),
        "exporter/demo/README.md is out of date; replace its table of faults with:\n{table}"
    );
}
