//! Health through the stage: its signals and their resources.

mod opened;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::NumberValue,
    write::{Envelope, MetricsWriter, PointParts, Value},
};
use pulsetrain_pipeline::{Batch, Stage, clock};
use pulsetrain_semconv::{Span, attribute, event, metric, span};

use super::{Health, align::MAX_RANKS};
use crate::{
    signals::{Derivation, Signals, SignalsConfig, SignalsStage},
    steps::{RankInfo, StepFacts},
    test_trainer::{Bench, START, Seen, Trainer, at},
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

fn instances(bench: &Bench, metric: &'static pulsetrain_semconv::Metric) -> Vec<String> {
    let mut instances: Vec<String> = bench
        .points(metric)
        .into_iter()
        .map(|point| point.instance)
        .collect();
    instances.sort();
    instances.dedup();
    instances
}

#[test]
fn straggler_is_reported_with_its_rank_and_statistics_with_the_run() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks: Vec<Trainer> = (0..3).map(|rank| Trainer::new("r", rank, 3)).collect();
    (1..=40).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64), 2));
    bench.finish();

    assert_eq!(
        instances(&bench, &metric::TRAIN_STRAGGLER_SCORE),
        ["r/0", "r/1", "r/2"]
    );
    assert_eq!(
        instances(&bench, &metric::PERF_DATA_WAIT_RATIO),
        ["r/0", "r/1", "r/2"]
    );
    assert!(
        bench
            .points(&metric::PERF_DATA_WAIT_RATIO)
            .iter()
            .all(|point| (point.value - 0.05).abs() < 1e-6)
    );
    assert_eq!(instances(&bench, &metric::TRAIN_RANK_STEP_TIME), ["r"]);
    let ranks: Vec<_> = bench
        .points(&metric::TRAIN_RANKS)
        .into_iter()
        .map(|point| (point.attributes, point.value))
        .collect();
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
    for expected in [
        "kind=straggler",
        "state=open",
        "subject=rank 2",
        "train.rank=2",
        "train.step=20",
    ] {
        assert!(
            attributes.iter().any(|found| found.ends_with(expected)),
            "{expected}: {attributes:?}"
        );
    }
    let open = bench.points(&metric::TRAIN_VERDICTS);
    assert_eq!(
        (open.len(), open[0].instance.as_str(), open[0].value),
        (1, "r/2", 1.0)
    );
}

#[test]
fn open_verdicts_and_wall_time_totals_are_resent_every_minute() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks: Vec<Trainer> = (0..3).map(|rank| Trainer::new("r", rank, 3)).collect();
    (1..=200).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64), 2));
    bench.finish();
    let open = bench.values(&metric::TRAIN_VERDICTS);
    assert!(open.len() >= 3, "{open:?}");
    assert!(open.iter().all(|value| *value == 1.0), "{open:?}");
    assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), 1);
    let stalled: Vec<(u64, f64)> = bench
        .points(&metric::TRAIN_WALL_TIME)
        .into_iter()
        .filter(|point| {
            point
                .attributes
                .iter()
                .any(|attribute| attribute.ends_with("=stall"))
        })
        .map(|point| (point.time, point.value))
        .collect();
    assert!(stalled.len() >= 3, "{stalled:?}");
    assert_eq!(stalled[0], (at(0.0), 0.0), "begins with the run");
}

#[test]
fn series_of_a_run_end_when_its_last_rank_ends() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks: Vec<Trainer> = (0..2).map(|rank| Trainer::new("r", rank, 2)).collect();
    (1..=40).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64), 1));
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
    let mut ranks: Vec<Trainer> = (0..3).map(|rank| Trainer::new("r", rank, 4)).collect();
    (1..=30).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64), 9));
    bench.finish();
    let ranks: Vec<f64> = bench
        .points(&metric::TRAIN_RANKS)
        .iter()
        .map(|point| point.value)
        .collect();
    assert_eq!(ranks, [3.0, 1.0]);
    assert_eq!(
        bench.points(&metric::TRAIN_STRAGGLER_SCORE).len(),
        90,
        "those that report are compared"
    );
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
    let last = |bucket: &str| {
        let of_bucket = points
            .iter()
            .filter(|point| point.attributes[0].ends_with(bucket));
        of_bucket.map(|point| point.value).fold(0.0, f64::max)
    };
    let uses = ["productive", "overhead", "idle", "wasted"].map(last);
    // 20 steps and 14 new ones; two initializations; 35 s until the restart and 6 repeated steps.
    assert_eq!(uses, [34.0, 10.0, 0.0, 35.0]);
    let of = |cause: &str| {
        points
            .iter()
            .filter(|point| point.attributes.iter().any(|text| text.ends_with(cause)))
            .map(|point| point.value)
            .fold(0.0, f64::max)
    };
    assert_eq!(
        (of("training_prep"), of("wasted_progress_from_disruption")),
        (10.0, 6.0)
    );
    let goodput = bench.points(&metric::TRAIN_GOODPUT);
    assert_eq!(
        goodput.last().map(|point| (point.instance.as_str(), point.value)),
        Some(("r", 34.0 / 85.0))
    );
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
    let goodput = bench.points(&metric::TRAIN_GOODPUT);
    let goodput = goodput.last().map_or(0.0, |point| point.value);
    assert!((goodput - 0.75).abs() < 1e-6, "{goodput}");
}

#[test]
fn rank_that_repeats_a_step_does_not_silence_the_others() {
    let mut bench = bench(SignalsConfig::default());
    let mut ranks: Vec<Trainer> = (0..3).map(|rank| Trainer::new("r", rank, 3)).collect();
    (1..=20).for_each(|number| step(&mut bench, &mut ranks, number, at(number as f64), 9));
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

fn xid(count: i64, time: u64, run: Option<&str>) -> Batch {
    let mut attributes = vec![
        (&attribute::GPU_ID, Value::Text("GPU-1")),
        (&attribute::GPU_XID_CODE, Value::Int(94)),
    ];
    if let Some(run) = run {
        attributes.push((&attribute::TRAIN_RUN_ID, Value::Text(run)));
        attributes.push((&attribute::TRAIN_RANK, Value::Int(1)));
    }
    let mut writer = MetricsWriter::default();
    let point = PointParts {
        start_unix_nanos: UnixNanos(START),
        time_unix_nanos: UnixNanos(time),
        attributes: &attributes,
    };
    writer.number(&metric::GPU_XID_ERRORS, point, NumberValue::Int(count));
    let resource = [(attribute::SERVICE_INSTANCE_ID.name, Value::Text("node-7"))];
    let encoded = writer
        .finish(&Envelope::new(&resource, "gpu", "1", ""))
        .expect("a point");
    Batch::new(Signal::Metrics, encoded.items, encoded.bytes)
}

#[test]
fn gpu_verdict_has_the_gpu_resource_and_names_its_run() {
    let mut bench = bench(SignalsConfig::default());
    let mut rank = Trainer::new("r", 0, 1);
    rank.step_span(1, at(1.0), 1.0, &[]);
    bench.pass(&mut rank);
    for (count, secs) in [(0, 2.0), (1, 3.0), (1, 30.0)] {
        bench
            .stage
            .pass(xid(count, at(secs), Some("r")), bench.now, &mut bench.out);
    }
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    let (instance, time, _, attributes) = &verdicts[0];
    assert_eq!((instance.as_str(), *time), ("node-7", at(3.0)));
    for expected in [
        "kind=gpu_xid",
        "gpu.id=GPU-1",
        "train.run.id=r",
        "train.rank=1",
        "subject=GPU-1",
    ] {
        assert!(
            attributes.iter().any(|found| found.ends_with(expected)),
            "{expected}: {attributes:?}"
        );
    }
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
        bench
            .stage
            .pass(xid(count, at(secs), run), bench.now, &mut bench.out);
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
        (first..=last).for_each(|number| {
            let slow = if number <= slow_until { 2 } else { 9 };
            step(bench, &mut ranks, number, at(number as f64), slow);
        });
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
    (122..=160).for_each(|number| step(&mut bench, &mut second, number, at(number as f64), 9));
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
            bench
                .stage
                .pass(xid(count, at(secs), None), bench.now, &mut bench.out);
        }
        assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), expected, "{runs:?}");
    }
}

#[test]
fn step_from_the_future_does_not_move_the_time_of_other_runs() {
    let mut bench = bench(SignalsConfig::default());
    let unix_now = clock::unix_now().as_nanos() as u64;
    let mut rank = Trainer::new("r", 0, 1);
    for number in 1..=20 {
        rank.step_span(number, unix_now - (20 - number as u64) * 1_000_000_000, 1.0, &[]);
    }
    bench.pass(&mut rank);
    let mut other = Trainer::new("s", 0, 1);
    other.step_span(1, unix_now + 24 * 3_600_000_000_000, 1.0, &[]);
    bench.pass(&mut other);
    assert_eq!(bench.events(&event::TRAIN_VERDICT), [], "no day has passed");
    for _ in 0..12 {
        bench.wait(Duration::from_secs(5));
    }
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    let stalls: Vec<_> = verdicts
        .iter()
        .map(|(instance, time, ..)| (instance.as_str(), (time - unix_now) / 1_000_000_000))
        .collect();
    assert_eq!(stalls, [("r", 30)]);
}

#[test]
fn live_run_without_any_telemetry_is_stalled() {
    let mut bench = bench(SignalsConfig::default());
    let unix_now = clock::unix_now().as_nanos() as u64;
    let mut rank = Trainer::new("r", 0, 1);
    for number in 1..=20 {
        rank.step_span(number, unix_now - (20 - number as u64) * 1_000_000_000, 1.0, &[]);
    }
    bench.pass(&mut rank);
    for _ in 0..12 {
        bench.wait(Duration::from_secs(5));
    }
    let verdicts = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(verdicts.len(), 1, "{verdicts:?}");
    assert!(
        verdicts[0].3.iter().any(|text| text.ends_with("kind=stalled")),
        "{verdicts:?}"
    );
    assert_eq!((verdicts[0].1 - unix_now) / 1_000_000_000, 30);
    rank.step_span(21, unix_now + 70_000_000_000, 1.0, &[]);
    rank.step_span(22, unix_now + 71_000_000_000, 1.0, &[]);
    bench.pass(&mut rank);
    assert_eq!(bench.events(&event::TRAIN_VERDICT).len(), 2, "the run continues");
}

/// Returns the bodies of the events of stalls, and whether each opens.
fn stalls(bench: &Bench) -> Vec<(String, bool)> {
    let events = bench.events(&event::TRAIN_VERDICT).into_iter();
    events
        .filter(|(.., attributes)| attributes.iter().any(|text| text.ends_with("kind=stalled")))
        .map(|(_, _, body, attributes)| (body, attributes.iter().any(|text| text.ends_with("state=open"))))
        .collect()
}

#[test]
fn reason_of_a_stall_states_that_the_run_may_have_ended() {
    for planned in [Some(1000.0), None] {
        let mut bench = bench(SignalsConfig::default());
        let unix_now = clock::unix_now().as_nanos() as u64;
        let mut rank = Trainer::new("r", 0, 1);
        if let Some(steps) = planned {
            rank.record(&metric::TRAIN_PLANNED_STEPS, unix_now - 30_000_000_000, steps);
        }
        for number in 1..=20 {
            rank.step_span(number, unix_now - (20 - number as u64) * 1_000_000_000, 1.0, &[]);
        }
        bench.pass(&mut rank);
        for _ in 0..12 {
            bench.wait(Duration::from_secs(5));
        }
        let stalls = stalls(&bench);
        assert_eq!(stalls.len(), 1, "{stalls:?}");
        assert_eq!(
            stalls[0].0.contains("train.planned_steps"),
            planned.is_none(),
            "{stalls:?}"
        );
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
            let time = at((40 + pause + more) as f64);
            bench
                .stage
                .pass(xid(0, time, Some("r")), bench.now, &mut bench.out);
        }
        bench.finish();
        let stalls: Vec<bool> = stalls(&bench).into_iter().map(|(_, is_open)| is_open).collect();
        let expected: &[bool] = if pause > 0 { &[true, false] } else { &[] };
        assert_eq!(stalls, expected, "a pause of {pause} s");
        let stalled = bench.points(&metric::TRAIN_WALL_TIME).into_iter();
        let stalled = stalled.filter(|point| {
            point.instance == "r" && point.attributes.iter().any(|text| text.ends_with("=stall"))
        });
        let stalled = stalled.map(|point| point.value).fold(0.0, f64::max);
        assert_eq!(stalled, pause as f64, "a pause of {pause} s");
    }
}
