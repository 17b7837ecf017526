//! Steps that the assembler makes of spans and points.

use std::{sync::Arc, time::Duration};

use pulsetrain_semconv::{metric, span};

use pulsetrain_otlp::{
    Signal,
    view::{Message, Resource},
    wire::{Field, Reader, WireValue},
};
use pulsetrain_pipeline::{Ack, Batch, SourceId, Stage, clock};
use pulsetrain_run::RunOrigin;

use crate::{
    config::SignalsConfig,
    signals::SignalsStage,
    steps::{Phase, StepFacts, assembler::resource_bytes},
    test_trainer::{Bench, Seen, Trainer, at, time},
};

mod forms;

const WAIT: Duration = Duration::from_secs(1);

fn bench() -> (Bench, Seen) {
    bench_with(SignalsConfig::default())
}

fn bench_with(config: SignalsConfig) -> (Bench, Seen) {
    let (mut bench, seen) = (Bench::new(Vec::new()), Seen::default());
    bench.stage = SignalsStage::with(config, vec![Box::new(seen.clone())]);
    (bench, seen)
}

fn numbers(seen: &Seen) -> Vec<i64> {
    seen.steps().iter().map(|step| step.number).collect()
}

/// Returns the steps, and whether each is repeated.
fn repeated(seen: &Seen) -> Vec<(i64, bool)> {
    let steps = seen.steps();
    steps.iter().map(|step| (step.number, step.is_repeated)).collect()
}

#[test]
fn spans_and_metrics_of_a_step_are_merged() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=3 {
        let end = at(step as f64);
        rank.step(step, end, 1.0).record(&metric::TRAIN_LOSS, end, 2.0);
        rank.record(&metric::TRAIN_TOKENS, end, 4096.0);
        let phases = [(&span::PERF_DATA, 0.25), (&span::PERF_FORWARD, 0.5)];
        rank.step_span(step, end, 1.0, &phases);
        bench.pass(&mut rank);
    }
    assert_eq!(numbers(&seen), [1, 2], "the newest step may get more");
    bench.finish();
    let steps = seen.steps();
    assert_eq!(steps.len(), 3);
    for (step, number) in steps.iter().zip(1..) {
        assert_eq!((step.number, step.covered), (number, (number > 1).then_some(1)));
        assert_eq!(step.start, Some(time(number as f64 - 1.0)));
        assert_eq!((step.end, step.duration_secs()), (time(number as f64), Some(1.0)));
        let phases = [Phase::Data, Phase::Forward, Phase::Backward].map(|phase| step.phase(phase));
        assert_eq!(phases, [Some(0.25), Some(0.5), None]);
        assert_eq!(step.value(&metric::TRAIN_LOSS), Some(2.0));
        assert_eq!(step.value(&metric::TRAIN_TOKENS), Some(4096.0));
        assert!(!step.is_repeated);
    }
}

#[test]
fn steps_of_one_batch_stay_open_for_the_spans_that_follow() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=500 {
        rank.step(step, at(step as f64), 0.5);
        rank.step_span(step, at(step as f64), 0.5, &[(&span::PERF_BACKWARD, 0.25)]);
    }
    bench.pass(&mut rank);
    bench.finish();
    let steps = seen.steps();
    assert_eq!(numbers(&seen), (1..=500).collect::<Vec<_>>());
    assert!(steps.iter().all(|step| step.phase(Phase::Backward) == Some(0.25)));
}

#[test]
fn metrics_without_spans_close_steps_after_the_wait_then_one_step_late() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    rank.step(10, at(1.0), 0.5)
        .record(&metric::PERF_DATA_TIME, at(1.0), 0.125);
    bench.pass(&mut rank);
    assert_eq!(numbers(&seen), [0; 0], "spans may come");
    bench.wait(WAIT);
    assert_eq!(numbers(&seen), [10]);
    assert_eq!(seen.steps()[0].phase(Phase::Data), Some(0.125));
    for step in [20, 30] {
        rank.step(step, at(step as f64), 0.5);
        bench.pass(&mut rank);
    }
    assert_eq!(numbers(&seen), [10, 20], "what the rank sends is known");
    let step = &seen.steps()[1];
    assert_eq!((step.covered, step.covered_secs()), (Some(10), Some(19.0)));
    bench.wait(WAIT);
    assert_eq!(numbers(&seen), [10, 20, 30]);
    assert_eq!(bench.stage.due(), None, "nothing is open");
}

#[test]
fn child_spans_that_arrive_before_their_step_are_matched_by_trace() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    rank.span(&span::PERF_FORWARD, Some(1), at(0.0), at(0.5));
    bench.pass(&mut rank);
    rank.step_span(1, at(1.0), 1.0, &[]);
    bench.pass(&mut rank).finish();
    assert_eq!(seen.steps()[0].phase(Phase::Forward), Some(0.5));
}

#[test]
fn redone_step_is_marked_repeated_and_late_data_of_a_closed_step_is_not() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for (step, end) in [(1, 1.0), (2, 2.0), (3, 3.0), (2, 10.0), (3, 11.0)] {
        rank.step(step, at(end), 1.0);
        bench.pass(&mut rank).wait(WAIT);
    }
    // An evaluation of step 3, recorded with its number.
    rank.record(&metric::TRAIN_GLOBAL_STEP, at(12.0), 3.0);
    bench.pass(&mut rank).finish();
    let expected = [(1, false), (2, false), (3, false), (2, true), (3, true)];
    assert_eq!(repeated(&seen), expected);
}

#[test]
fn steps_before_and_after_a_restart_stay_separate_in_one_batch() {
    for (with_points, with_spans) in [(true, false), (false, true), (true, true)] {
        let (mut bench, seen) = bench_with(SignalsConfig::offline());
        let mut rank = Trainer::new("r", 0, 1);
        let first = (1..=10).map(|number| (number, number as f64));
        let second = (5..=15).map(|number| (number, 100.0 + number as f64));
        let steps: Vec<(i64, f64)> = first.chain(second).collect();
        for (number, end) in &steps {
            if with_points {
                rank.step(*number, at(*end), 1.0)
                    .record(&metric::TRAIN_LOSS, at(*end), *end);
            }
            if with_spans {
                rank.step_span(*number, at(*end), 1.0, &[(&span::PERF_FORWARD, 0.5)]);
            }
        }
        bench.pass(&mut rank).finish();
        let found: Vec<_> = seen.steps();
        let numbers: Vec<_> = found.iter().map(|step| (step.number, step.end)).collect();
        let expected: Vec<_> = steps.iter().map(|(number, end)| (*number, time(*end))).collect();
        assert_eq!(numbers, expected, "points {with_points}, spans {with_spans}");
        let repeated = found.iter().filter(|step| step.is_repeated).count();
        assert_eq!(repeated, 6, "points {with_points}, spans {with_spans}");
        for step in found.iter().filter(|_| with_points) {
            let loss = step.value(&metric::TRAIN_LOSS).map(time);
            assert_eq!(loss, Some(step.end));
        }
    }
}

#[test]
fn lower_step_number_at_a_later_time_is_a_repeated_step() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    let (numbers, ends) = ([1, 2, 3, 2, 1, 3, 4], [1.0, 2.0, 3.0, 10.0, 2.5, 11.0, 12.0]);
    for (step, secs) in numbers.into_iter().zip(ends) {
        rank.record(&metric::TRAIN_GLOBAL_STEP, at(secs), f64::from(step));
        bench.pass(&mut rank).wait(WAIT);
    }
    bench.finish();
    let first = [(1, false), (2, false), (3, false)];
    let second = [(2, true), (3, true), (4, false)];
    assert_eq!(repeated(&seen), [first, second].concat());
}

#[test]
fn extreme_step_numbers_do_not_overflow() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for (step, end) in [(i64::MIN, 1.0), (i64::MAX, 2.0)] {
        rank.step_span(step, at(end), 1.0, &[]);
        bench.pass(&mut rank).wait(WAIT);
    }
    bench.finish();
    assert_eq!(seen.steps()[1].done, Some(i64::MAX));
}

#[test]
fn steps_are_tracked_separately_for_each_rank_and_attempt() {
    let (mut bench, seen) = bench();
    for (rank, attempt) in [(0, 1), (1, 1), (0, 2)] {
        let mut trainer = Trainer::of_attempt("r", rank, 2, attempt);
        trainer.step(5, at(attempt as f64), 1.0);
        bench.pass(&mut trainer);
    }
    bench.finish();
    let steps = seen.steps();
    let who = steps.iter().map(|step| (step.rank.rank, step.rank.attempt));
    assert_eq!(who.collect::<Vec<_>>(), [(0, 1), (1, 1), (0, 2)]);
    assert_eq!(steps[0].rank.world_size, Some(2));
}

#[test]
fn excess_open_steps_close_early() {
    let (mut bench, seen) = bench_with(SignalsConfig {
        max_open: 10,
        ..SignalsConfig::offline()
    });
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=30 {
        rank.step(step, at(step as f64), 1.0);
    }
    bench.pass(&mut rank);
    assert_eq!(numbers(&seen), (1..=20).collect::<Vec<_>>());
}

#[test]
fn malformed_batch_passes_through_unchanged() {
    let (mut bench, _) = bench();
    let torn = Batch::new(Signal::Metrics, 3, vec![0x0a, 0xff, 0x01]);
    let mut out = Vec::new();
    bench.stage.pass(torn.clone(), bench.now, &mut out);
    assert_eq!(out, [torn]);
}

#[test]
fn longest_silent_rank_is_evicted_at_the_limit() {
    let (mut bench, seen) = bench_with(SignalsConfig {
        max_ranks: 2,
        ..SignalsConfig::default()
    });
    for (rank, secs) in [(0, 1.0), (1, 2.0), (0, 3.0), (2, 4.0)] {
        let mut trainer = Trainer::new("r", rank, 3);
        trainer.step(secs as i64, at(secs), 1.0);
        bench.pass(&mut trainer);
    }
    bench.finish();
    let steps = seen.steps();
    let who: Vec<_> = steps.iter().map(|step| (step.rank.rank, step.number)).collect();
    assert_eq!(who, [(0, 1), (0, 3), (2, 4)], "rank 1 was silent since 2 s");
}

#[test]
fn values_with_a_different_time_belong_to_the_open_step() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    rank.step(7, at(1.0), 1.0);
    rank.record(&metric::TRAIN_LOSS, at(1.001), 2.5);
    bench.pass(&mut rank).finish();
    assert_eq!(seen.steps()[0].value(&metric::TRAIN_LOSS), Some(2.5));
}

#[test]
fn steps_without_numbers_are_counted() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for secs in [1.0, 2.0, 3.0] {
        rank.record(&metric::TRAIN_STEP_DURATION, at(secs), 0.5);
    }
    bench.pass(&mut rank).finish();
    assert_eq!(numbers(&seen), [1, 2, 3]);
}

/// The compared values of a step: number, end, data time, loss, tokens.
type Facts = (i64, u64, Option<f64>, Option<f64>, Option<f64>);

/// Passes steps as batches of these sizes, each signal in its order. Returns the steps.
fn facts(steps: i64, sizes: &[(bool, i64)]) -> Vec<Facts> {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    let (mut points, mut spans) = (1, 1);
    let rest = [(true, steps), (false, steps)];
    for (is_points, size) in sizes.iter().copied().chain(rest) {
        let next = if is_points { &mut points } else { &mut spans };
        let last = (*next + size).min(steps + 1);
        for step in *next..last {
            let end = at(step as f64);
            if is_points {
                rank.step(step, end, 0.5)
                    .record(&metric::TRAIN_LOSS, end, step as f64)
                    .record(&metric::TRAIN_TOKENS, end, 100.0 + step as f64);
            } else {
                rank.step_span(step, end, 0.5, &[(&span::PERF_DATA, 0.25)]);
            }
        }
        *next = last;
        bench.pass(&mut rank);
    }
    bench.finish();
    let of = |step: &StepFacts| {
        (
            step.number,
            step.end.0,
            step.phase(Phase::Data),
            step.value(&metric::TRAIN_LOSS),
            step.value(&metric::TRAIN_TOKENS),
        )
    };
    seen.steps().iter().map(of).collect()
}

proptest::proptest! {
    #[test]
    fn batch_boundaries_do_not_change_the_steps(
        sizes in proptest::collection::vec((proptest::bool::ANY, 0_i64..8), 0..24),
    ) {
        let expected: Vec<Facts> = (1..=30)
            .map(|step| {
                let number = step as f64;
                (step, at(number), Some(0.25), Some(number), Some(100.0 + number))
            })
            .collect();
        proptest::prop_assert_eq!(facts(30, &sizes), expected);
    }
}

#[test]
fn spans_exported_after_the_metrics_of_their_step_still_become_steps() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=180 {
        rank.step_span(step, at(step as f64), 1.0, &[]);
        // Metrics once a minute in the middle of the next step. Spans every five seconds, two seconds later.
        if step % 60 == 0 {
            let time = at(step as f64 + 0.5);
            let mut metrics = Trainer::new("r", 0, 1);
            metrics
                .record(&metric::TRAIN_GLOBAL_STEP, time, step as f64 + 1.0)
                .record(&metric::TRAIN_LOSS, time, 2.5);
            bench.pass(&mut metrics).wait(2 * WAIT);
        }
        if step % 5 == 0 {
            bench.pass(&mut rank).wait(WAIT);
        }
    }
    rank.step_span(181, at(181.0), 1.0, &[]);
    bench.pass(&mut rank).finish();
    let steps = seen.steps();
    assert_eq!(numbers(&seen), (1..=181).collect::<Vec<_>>());
    assert!(steps.iter().all(|step| step.start.is_some() && !step.is_repeated));
    let has_loss = |step: &&StepFacts| step.value(&metric::TRAIN_LOSS).is_some();
    let with_loss: Vec<_> = steps.iter().filter(has_loss).map(|step| step.number).collect();
    assert_eq!(with_loss, [61, 121, 181]);
}

#[test]
fn metrics_become_steps_once_spans_stop() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=60 {
        rank.step(step, at(step as f64), 1.0);
        if step <= 20 {
            rank.step_span(step, at(step as f64), 1.0, &[]);
        }
        bench.pass(&mut rank).wait(WAIT);
    }
    assert_eq!(numbers(&seen), (1..=60).collect::<Vec<_>>());
}

/// An OpenTelemetry SDK exports spans often and metrics once a minute, with the newest step number and their
/// own time.
#[test]
fn metrics_exported_once_a_minute_cover_the_steps_since_the_previous_export() {
    let (mut bench, seen) = bench();
    let mut rank = Trainer::new("r", 0, 1);
    for step in 1..=180 {
        rank.step_span(step, at(step as f64), 1.0, &[]);
        bench.pass(&mut rank).wait(WAIT);
        if step % 60 == 0 {
            let time = at(step as f64 + 0.5);
            rank.record(&metric::TRAIN_GLOBAL_STEP, time, step as f64).record(
                &metric::TRAIN_TOKENS,
                time,
                60.0 * 1024.0,
            );
            bench.pass(&mut rank);
        }
    }
    bench.finish();
    let steps = seen.steps();
    assert_eq!(numbers(&seen), (1..=180).collect::<Vec<_>>(), "no step twice");
    assert!(steps.iter().all(|step| !step.is_repeated));
    assert!(steps[1..].iter().all(|step| step.done == Some(1)));
    let has_tokens = |step: &&StepFacts| step.value(&metric::TRAIN_TOKENS).is_some();
    let of_step = |step: &StepFacts| (step.number, step.covered, step.covered_secs());
    let tokens: Vec<_> = steps.iter().filter(has_tokens).map(of_step).collect();
    let expected = [(121, Some(60), Some(60.0))];
    assert_eq!(tokens, expected, "the first total may count what came before");
}

/// The run of one source stops, so its stall grows with the batches of the other source.
#[test]
fn derived_batches_keep_their_source_and_never_use_another_sources_ack() {
    const LAST_OF_FIRST: i64 = 100;
    let mut stage = SignalsStage::new(SignalsConfig::default());
    let begun = clock::now();
    let runs = [("r", SourceId::new("left")), ("s", SourceId::new("right"))];
    let mut trainers = runs.map(|(run, source)| (Trainer::new(run, 0, 1), source));
    let (mut own, mut of_another) = (0, 0);
    for step in 1..=400 {
        for (trainer, source) in &mut trainers {
            if step > LAST_OF_FIRST && *source == runs[0].1 {
                continue;
            }
            trainer.step(step, at(step as f64), 1.0);
            for batch in trainer.batches() {
                let batch = batch.from_source(*source).with_ack(Arc::new(Ack::new(|_| {})));
                let (mut out, now) = (Vec::new(), begun + Duration::from_secs(step as u64));
                stage.pass(batch, now, &mut out);
                for passed in out {
                    assert_has_source_of_its_run(&passed, &runs);
                    let is_own = passed.source() == *source;
                    assert_eq!(passed.is_replayable(), is_own, "{passed:?}");
                    own += usize::from(is_own);
                    of_another += usize::from(!is_own);
                }
            }
        }
    }
    assert!(own > 800 && of_another > 50, "{own}, {of_another}");
}

fn assert_has_source_of_its_run(batch: &Batch, runs: &[(&str, SourceId)]) {
    let of_source = runs.iter().find(|(_, source)| *source == batch.source());
    let (run, _) = of_source.expect("a batch has one of the sources");
    for of_resource in resources(batch) {
        let origin =
            RunOrigin::from_attributes(Resource::decode(resource_bytes(&of_resource)).unwrap().attributes);
        assert_eq!(origin.run_id.as_deref(), Some(*run));
    }
}

/// Returns the messages of the resources in a batch of metrics or logs.
fn resources(batch: &Batch) -> Vec<Vec<u8>> {
    let fields = Reader::new(batch.bytes()).map(Result::unwrap);
    let message = |field: Field<'_>| match field.value {
        WireValue::Bytes(bytes) => bytes.to_vec(),
        _ => panic!("a resource is a message"),
    };
    fields.map(message).collect()
}
