//! Health through the stage: its signals and their resources.

mod opened;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    sync::Arc,
    time::Duration,
};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::NumberValue,
    write::{AttributeValue, Envelope, MetricsWriter, PointParts},
};
use pulsetrain_pipeline::{Batch, Stage, clock};
use pulsetrain_semconv::{Span, attribute, event, metric, span};

use super::{Health, align::MAX_RANKS};
use crate::{
    config::SignalsConfig,
    signals::{Derivation, Signals, SignalsStage},
    steps::{RankInfo, StepFacts},
    test_trainer::{Bench, SECOND, START, Seen, Trainer, at},
};

fn bench(config: SignalsConfig) -> Bench {
    let mut bench = Bench::new(Vec::new());
    bench.stage = SignalsStage::with(config, vec![Box::new(Health::new(&config))]);
    bench
}

/// Returns the phases of a second in which the forward pass takes `slow` times as long as on the other ranks.
fn phases(slow: f64) -> [(&'static Span, f64); 4] {
    let forward = 0.2 * slow;
    [
        (&span::PERF_DATA, 0.05),
        (&span::PERF_FORWARD, forward),
        (&span::PERF_BACKWARD, 0.9 - forward),
        (&span::PERF_OPTIMIZER, 0.05),
    ]
}

fn step(bench: &mut Bench, ranks: &mut [Trainer], number: i64, end: u64, slow_rank: usize) {
    for (rank, trainer) in ranks.iter_mut().enumerate() {
        let slow = if rank == slow_rank { 1.5 } else { 1.0 };
        trainer
            .step(number, end, 1.0)
            .step_span(number, end, 1.0, &phases(slow));
        bench.pass(trainer);
    }
}

/// Returns this number of ranks of the run `r`.
fn ranks(count: i64) -> Vec<Trainer> {
    (0..count).map(|rank| Trainer::new("r", rank, count)).collect()
}

/// Passes these steps. Each ends at the second of its number.
fn steps(bench: &mut Bench, ranks: &mut [Trainer], numbers: RangeInclusive<i64>, slow_rank: usize) {
    for number in numbers {
        step(bench, ranks, number, at(number as f64), slow_rank);
    }
}

fn instances(bench: &Bench, metric: &'static pulsetrain_semconv::Metric) -> BTreeSet<String> {
    let points = bench.points(metric).into_iter();
    points.map(|point| point.instance).collect()
}

/// Returns whether one of the attributes ends with a text.
fn has(attributes: &[String], text: &str) -> bool {
    attributes.iter().any(|attribute| attribute.ends_with(text))
}

/// Asserts that an attribute ends with each of these texts.
#[track_caller]
fn assert_has_all(attributes: &[String], texts: &[&str]) {
    for text in texts {
        assert!(has(attributes, text), "{text}: {attributes:?}");
    }
}

#[test]
fn straggler_is_reported_with_its_rank_and_statistics_with_the_run() {
    let mut bench = bench(SignalsConfig::default());
    steps(&mut bench, &mut ranks(3), 1..=40, 2);
    bench.finish();

    let of_ranks: BTreeSet<String> = ["r/0", "r/1", "r/2"].map(str::to_owned).into();
    assert_eq!(instances(&bench, &metric::TRAIN_STRAGGLER_SCORE), of_ranks);
    assert_eq!(instances(&bench, &metric::PERF_DATA_WAIT_RATIO), of_ranks);
    let shares = bench.values(&metric::PERF_DATA_WAIT_RATIO);
    assert!(shares.iter().all(|share| (share - 0.05).abs() < 1e-6));
    let of_run: BTreeSet<String> = ["r".to_owned()].into();
    assert_eq!(instances(&bench, &metric::TRAIN_RANK_STEP_TIME), of_run);
    let ranks = bench.points(&metric::TRAIN_RANKS).into_iter();
    let ranks: Vec<_> = ranks.map(|point| (point.attributes, point.value)).collect();
    let expected = [
        ("train.rank_state=reporting", 3.0),
        ("train.rank_state=missing", 0.0),
    ];
    assert_eq!(
        ranks,
        expected.map(|(state, ranks)| (vec![state.to_owned()], ranks))
    );

    let verdicts = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let (instance, time, reason, attributes) = &verdicts[0];
    assert_eq!((instance.as_str(), *time), ("r/2", at(20.0)));
    assert!(reason.starts_with("Rank 2 is slower"), "{reason}");
    assert_has_all(attributes, &["kind=straggler", "state=open", "train.step=20"]);
    assert_has_all(attributes, &["subject=rank 2", "train.rank=2"]);
    let open = bench.points(&metric::TRAIN_VERDICTS);
    let expected = (1, "r/2", 1.0);
    assert_eq!((open.len(), open[0].instance.as_str(), open[0].value), expected);
}

#[test]
fn open_verdicts_and_wall_time_totals_are_resent_every_minute() {
    let mut bench = bench(SignalsConfig::default());
    steps(&mut bench, &mut ranks(3), 1..=200, 2);
    bench.finish();
    let open = bench.values(&metric::TRAIN_VERDICTS);
    assert!(open.len() >= 3, "{open:?}");
    assert!(open.iter().all(|value| *value == 1.0), "{open:?}");
    assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), 1);
    let mut stalled = bench.points(&metric::TRAIN_WALL_TIME);
    stalled.retain(|point| has(&point.attributes, "=stall"));
    assert!(stalled.len() >= 3, "{stalled:?}");
    let first = (stalled[0].time, stalled[0].value);
    assert_eq!(first, (at(0.0), 0.0), "begins with the run");
}

#[test]
fn series_of_a_run_end_when_its_last_rank_ends() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks = ranks(2);
    steps(&mut bench, &mut ranks, 1..=40, 1);
    let ended = |bench: &Bench, instance: &str| -> Vec<bool> {
        let series = bench.series().into_iter();
        series
            .filter(|((_, of, _), _)| of == instance)
            .map(|(_, ended)| ended)
            .collect()
    };
    ranks[0].end(at(41.0));
    bench.pass(&mut ranks[0]);
    assert!(ended(&bench, "r/0").iter().all(|ended| *ended));
    assert!(!ended(&bench, "r").iter().any(|ended| *ended));
    ranks[1].end(at(41.0));
    bench.pass(&mut ranks[1]);
    let series = bench.series();
    assert!(series.len() > 20, "{series:?}");
    let active: Vec<_> = series.iter().filter(|(_, ended)| !**ended).collect();
    assert!(active.is_empty(), "{active:?}");

    // Other telemetry arrives minutes after the end.
    let mut other = Trainer::new("other", 0, 1);
    for number in 1..=200 {
        other.step(number, at(41.0 + number as f64), 1.0);
        bench.pass(&mut other);
    }
    let series = bench.series().into_iter();
    let active: Vec<_> = series
        .filter(|((_, instance, _), ended)| (instance == "r" || instance.starts_with("r/")) && !ended)
        .collect();
    assert!(active.is_empty(), "{active:?}");
}

#[test]
fn ids_of_ranks_are_bounded_in_a_run() {
    let config = SignalsConfig {
        max_ranks: 2 * MAX_RANKS,
        ..SignalsConfig::default()
    };
    let mut health = Health::new(&config);
    let mut signals = Signals::default();
    let steps = Seen::default();
    let mut stage = Bench::new(vec![Box::new(steps.clone())]);
    let mut trainer = Trainer::new("r", 0, 1);
    trainer
        .step(1, at(1.0), 1.0)
        .record(&metric::MEMORY_HOST_USED, at(1.0), 1e9);
    stage.pass(&mut trainer).finish();
    let step = steps.steps().remove(0);
    for rank in 0..MAX_RANKS as i64 + 2000 {
        let info = Arc::new(RankInfo {
            rank,
            ..(*step.rank).clone()
        });
        let step = StepFacts {
            rank: Arc::clone(&info),
            ..step.clone()
        };
        health.on_step(&step, &mut signals);
        // Rank 0 does not end, so the run does not end.
        if rank > 0 {
            health.on_rank_end(&info, step.end, &mut signals);
        }
    }
    for kept in health.runs["r"].health.rank_counts() {
        assert!(kept <= MAX_RANKS, "{kept} ranks");
    }
    assert_eq!(health.runs["r"].health.rank_counts()[0], MAX_RANKS);
}

#[test]
fn missing_ranks_are_counted() {
    let mut bench = bench(SignalsConfig::default());
    steps(&mut bench, &mut ranks(4)[..3], 1..=30, 9);
    bench.finish();
    assert_eq!(bench.values(&metric::TRAIN_RANKS), [3.0, 1.0]);
    let scores = bench.points(&metric::TRAIN_STRAGGLER_SCORE);
    assert_eq!(scores.len(), 90, "those that report are compared");
}

#[test]
fn wall_time_accumulates_across_attempts() {
    let mut bench = bench(SignalsConfig::default());
    for (attempt, first, start) in [(1, 1, 0.0), (2, 15, 60.0)] {
        let mut rank = Trainer::of_attempt("r", 0, 1, attempt);
        rank.span(&span::RUN_INIT, None, at(start), at(start + 5.0));
        for number in first..first + 20 {
            let end = at(start + 5.0 + (number - first + 1) as f64);
            rank.step_span(number, end, 1.0, &[]);
            bench.pass(&mut rank);
        }
    }
    bench.finish();
    let points = bench.points(&metric::TRAIN_WALL_TIME);
    assert!(points.iter().all(|point| point.instance == "r"));
    let last = |use_of: &str| {
        let of_use = points.iter().filter(|point| has(&point.attributes, use_of));
        of_use.map(|point| point.value).fold(0.0, f64::max)
    };
    let uses = ["=productive", "=overhead", "=idle", "=wasted"].map(last);
    // 20 steps and 14 new ones; two initializations; 35 s until the restart and 6 repeated steps.
    assert_eq!(uses, [34.0, 10.0, 0.0, 35.0]);
    let causes = ["training_prep", "wasted_progress_from_disruption"].map(last);
    assert_eq!(causes, [10.0, 6.0]);
    let goodput = bench.points(&metric::TRAIN_GOODPUT);
    let last = goodput.last().map(|point| (point.instance.as_str(), point.value));
    assert_eq!(last, Some(("r", 34.0 / 85.0)));
}

#[test]
fn trainer_that_records_every_tenth_step_has_the_goodput_of_all_its_steps() {
    let mut bench = bench(SignalsConfig::default());
    let mut rank = Trainer::new("r", 0, 1);
    for number in (10..=500).step_by(10) {
        rank.step(number, at(number as f64), 1.0)
            .record(&metric::PERF_DATA_TIME, at(number as f64), 0.25);
        bench.pass(&mut rank);
    }
    bench.finish();
    let goodput = bench.values(&metric::TRAIN_GOODPUT);
    assert!((goodput[goodput.len() - 1] - 0.75).abs() < 1e-6, "{goodput:?}");
}

#[test]
fn rank_that_repeats_a_step_does_not_silence_the_others() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks = ranks(3);
    steps(&mut bench, &mut ranks, 1..=20, 9);
    bench.wait(Duration::from_secs(2));
    ranks[2].step_span(20, at(21.0), 1.0, &phases(1.0));
    bench.pass(&mut ranks[2]);
    bench.wait(Duration::from_secs(2));
    (21..=60).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64 + 1.0), 9));
    bench.finish();
    let scores = bench.points(&metric::TRAIN_STRAGGLER_SCORE);
    let newest = scores.iter().filter(|point| point.time > at(60.0));
    assert_eq!(newest.count(), 3, "the ranks are compared until the end");
}

#[test]
fn rank_recordings_imported_sequentially_are_compared() {
    let mut bench = bench(SignalsConfig::offline());
    for rank in 0..3 {
        let mut trainer = Trainer::new("r", rank, 3);
        for number in 1..=40 {
            let slow = if rank == 1 { 1.5 } else { 1.0 };
            trainer.step_span(number, at(number as f64), 1.0, &phases(slow));
        }
        bench.pass(&mut trainer);
    }
    bench.finish();
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    let instances: Vec<&str> = verdicts.iter().map(|(instance, ..)| instance.as_str()).collect();
    assert_eq!(instances, ["r/1"]);
}

#[test]
fn recordings_of_restarted_ranks_are_compared_in_every_attempt() {
    let mut bench = bench(SignalsConfig::offline());
    for rank in 0..3 {
        for (attempt, start) in [(1, 0), (2, 100)] {
            let mut trainer = Trainer::of_attempt("r", rank, 3, attempt);
            for number in 1..=40 {
                trainer.step_span(number, at((start + number) as f64), 1.0, &phases(1.0));
            }
            bench.pass(&mut trainer);
        }
    }
    bench.finish();
    let scores = bench.points(&metric::TRAIN_STRAGGLER_SCORE);
    let of_first_attempt = scores.iter().filter(|point| point.time < at(50.0));
    assert_eq!(of_first_attempt.count(), 3 * 40);
}

/// Passes the number of XID errors of a GPU, which a run may claim.
fn pass_xids(bench: &mut Bench, count: i64, secs: f64, run: Option<&str>) {
    let mut attributes = vec![
        (&attribute::GPU_ID, AttributeValue::Text("GPU-1")),
        (&attribute::GPU_XID_CODE, AttributeValue::Int(94)),
    ];
    if let Some(run) = run {
        attributes.push((&attribute::TRAIN_RUN_ID, AttributeValue::Text(run)));
        attributes.push((&attribute::TRAIN_RANK, AttributeValue::Int(1)));
    }
    let mut writer = MetricsWriter::default();
    let point = PointParts {
        start_unix_nanos: UnixNanos(START),
        time_unix_nanos: UnixNanos(at(secs)),
        attributes: &attributes,
    };
    writer.number(&metric::GPU_XID_ERRORS, point, NumberValue::Int(count));
    let resource = [(
        attribute::SERVICE_INSTANCE_ID.name,
        AttributeValue::Text("node-7"),
    )];
    let encoded = writer
        .finish(&Envelope::new(&resource, "gpu", "1", ""))
        .expect("a point");
    let batch = Batch::new(Signal::Metrics, encoded.items, encoded.bytes);
    bench.stage.pass(batch, bench.now, &mut bench.out);
}

#[test]
fn gpu_verdict_has_the_gpu_resource_and_names_its_run() {
    let mut bench = bench(SignalsConfig::default());
    let mut rank = Trainer::new("r", 0, 1);
    rank.step_span(1, at(1.0), 1.0, &[]);
    bench.pass(&mut rank);
    for (count, secs) in [(0, 2.0), (1, 3.0), (1, 30.0)] {
        pass_xids(&mut bench, count, secs, Some("r"));
    }
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let (instance, time, _, attributes) = &verdicts[0];
    assert_eq!((instance.as_str(), *time), ("node-7", at(3.0)));
    assert_has_all(attributes, &["kind=gpu_xid", "gpu.id=GPU-1", "subject=GPU-1"]);
    assert_has_all(attributes, &["train.run.id=r", "train.rank=1"]);
}

/// Returns the last value of each series of `train.verdicts`, by instance and attributes.
fn open_verdicts(bench: &Bench) -> BTreeMap<(String, Vec<String>), f64> {
    let points = bench.points(&metric::TRAIN_VERDICTS).into_iter();
    points
        .map(|point| ((point.instance, point.attributes), point.value))
        .collect()
}

#[test]
fn gpu_verdict_keeps_its_series_when_the_rank_becomes_known_later() {
    let mut bench = bench(SignalsConfig::default());
    let mut rank = Trainer::new("r", 0, 1);
    rank.step_span(1, at(1.0), 1.0, &[])
        .step_span(2, at(2.0), 1.0, &[]);
    bench.pass(&mut rank).wait(Duration::from_secs(2));
    // No run claims the GPU until the verdict is open.
    let readings = [
        (0, 2.0, None),
        (1, 3.0, None),
        (1, 30.0, None),
        (1, 40.0, Some("r")),
        (1, 400.0, Some("r")),
    ];
    for (count, secs, run) in readings {
        pass_xids(&mut bench, count, secs, run);
    }
    assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), 2, "it opens and ends");
    let open = open_verdicts(&bench);
    assert!(!open.is_empty());
    assert!(open.values().all(|value| *value == 0.0), "{open:?}");
}

#[test]
fn open_verdict_of_a_rank_that_restarts_moves_to_the_new_attempt() {
    let mut bench = bench(SignalsConfig::default());
    let restart = |attempt, bench: &mut Bench, first: i64, slow_until: i64, last: i64| -> Vec<Trainer> {
        let mut ranks: Vec<Trainer> = (0..3)
            .map(|rank| Trainer::of_instance(&format!("r/{rank}/{attempt}"), "r", (rank, 3), attempt))
            .collect();
        steps(bench, &mut ranks, first..=slow_until, 2);
        steps(bench, &mut ranks, slow_until + 1..=last, 9);
        ranks
    };
    let mut ranks = restart(1, &mut bench, 1, 40, 40);
    for rank in &mut ranks {
        rank.end(at(41.0));
        bench.pass(rank);
    }
    let mut second = restart(2, &mut bench, 42, 120, 121);
    let open = open_verdicts(&bench).into_iter();
    let open: Vec<_> = open.map(|((instance, _), value)| (instance, value)).collect();
    let expected = [("r/2/1".to_owned(), 0.0), ("r/2/2".to_owned(), 1.0)];
    assert_eq!(open, expected, "the verdict is open, once");
    steps(&mut bench, &mut second, 122..=160, 9);
    let open = open_verdicts(&bench);
    assert!(open.values().all(|value| *value == 0.0), "{open:?}");
}

#[test]
fn unclaimed_gpu_belongs_to_the_only_run() {
    for (runs, expected) in [(&["r"][..], 1), (&["r", "s"], 0)] {
        let mut bench = bench(SignalsConfig::default());
        for run in runs {
            let mut rank = Trainer::new(run, 0, 1);
            rank.step_span(1, at(1.0), 1.0, &[])
                .step_span(2, at(2.0), 1.0, &[]);
            bench.pass(&mut rank).wait(Duration::from_secs(2));
        }
        for (count, secs) in [(0, 2.0), (1, 3.0), (1, 30.0)] {
            pass_xids(&mut bench, count, secs, None);
        }
        assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), expected, "{runs:?}");
    }
}

/// Passes 20 steps of a second each; the last one ends now. Returns the bench, the rank, and the time.
fn live_run(planned_steps: Option<f64>) -> (Bench, Trainer, u64) {
    let mut bench = bench(SignalsConfig::default());
    let unix_now = clock::unix_now().as_nanos() as u64;
    let mut rank = Trainer::new("r", 0, 1);
    if let Some(steps) = planned_steps {
        rank.record(&metric::TRAIN_PLANNED_STEPS, unix_now - 30 * SECOND, steps);
    }
    for number in 1..=20 {
        rank.step_span(number, unix_now - (20 - number as u64) * SECOND, 1.0, &[]);
    }
    bench.pass(&mut rank);
    (bench, rank, unix_now)
}

fn wait_a_minute(bench: &mut Bench) {
    for _ in 0..12 {
        bench.wait(Duration::from_secs(5));
    }
}

#[test]
fn step_from_the_future_does_not_move_the_time_of_other_runs() {
    let (mut bench, _, unix_now) = live_run(None);
    let mut other = Trainer::new("s", 0, 1);
    other.step_span(1, unix_now + 24 * 3600 * SECOND, 1.0, &[]);
    bench.pass(&mut other);
    assert_eq!(bench.events(&event::TRAIN_VERDICT), [], "no day has passed");
    wait_a_minute(&mut bench);
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    let stalls: Vec<_> = verdicts
        .iter()
        .map(|(instance, time, ..)| (instance.as_str(), (time - unix_now) / SECOND))
        .collect();
    assert_eq!(stalls, [("r", 30)]);
}

#[test]
fn live_run_without_any_telemetry_is_stalled() {
    let (mut bench, mut rank, unix_now) = live_run(None);
    wait_a_minute(&mut bench);
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert_has_all(&verdicts[0].3, &["kind=stalled"]);
    assert_eq!((verdicts[0].1 - unix_now) / SECOND, 30);
    rank.step_span(21, unix_now + 70 * SECOND, 1.0, &[]);
    rank.step_span(22, unix_now + 71 * SECOND, 1.0, &[]);
    bench.pass(&mut rank);
    assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), 2, "the run continues");
}

/// Returns the bodies of the events of stalls, and whether each opens.
fn stalls(bench: &Bench) -> Vec<(String, bool)> {
    let events = bench.events(&event::TRAIN_VERDICT).into_iter();
    events
        .filter(|(.., attributes)| has(attributes, "kind=stalled"))
        .map(|(_, _, body, attributes)| (body, has(&attributes, "state=open")))
        .collect()
}

#[test]
fn reason_of_a_stall_states_that_the_run_may_have_ended() {
    for planned in [Some(1000.0), None] {
        let (mut bench, ..) = live_run(planned);
        wait_a_minute(&mut bench);
        let stalls = stalls(&bench);
        assert_eq!(stalls.len(), 1, "{stalls:?}");
        let has_advice = stalls[0].0.contains("train.planned_steps");
        assert_eq!(has_advice, planned.is_none(), "{stalls:?}");
    }
}

/// Two recorded runs. One ends earlier, without a planned number of steps and without an end of its
/// series.
#[test]
fn end_of_a_recording_is_not_a_stall_but_a_pause_inside_is() {
    for pause in [0, 100] {
        let mut bench = bench(SignalsConfig::offline());
        let mut rank = Trainer::new("r", 0, 1);
        let mut other = Trainer::new("s", 0, 1);
        for number in 1..=40 {
            let end = number + if number > 20 { pause } else { 0 };
            rank.step_span(number, at(end as f64), 1.0, &[]);
            bench.pass(&mut rank);
        }
        // The other run has steps in the pause and after the end, and the readings of a GPU continue.
        for more in 1..=240 + pause {
            other.step_span(more, at(more as f64), 1.0, &[]);
            bench.pass(&mut other);
        }
        for more in 1..=200 {
            pass_xids(&mut bench, 0, (40 + pause + more) as f64, Some("r"));
        }
        bench.finish();
        let stalls: Vec<bool> = stalls(&bench).into_iter().map(|(_, is_open)| is_open).collect();
        let expected: &[bool] = if pause > 0 { &[true, false] } else { &[] };
        assert_eq!(stalls, expected, "a pause of {pause} s");
        let stalled = bench.points(&metric::TRAIN_WALL_TIME).into_iter();
        let stalled = stalled.filter(|point| point.instance == "r" && has(&point.attributes, "=stall"));
        let stalled = stalled.map(|point| point.value).fold(0.0, f64::max);
        assert_eq!(stalled, pause as f64, "a pause of {pause} s");
    }
}
