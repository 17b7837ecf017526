//! The counter of opened verdicts, which a scrape observes after the verdict has ended.

use pulsetrain_semconv::{event, metric};

use super::{bench, phases};
use crate::{
    config::SignalsConfig,
    test_trainer::{Bench, SECOND, START, Trainer, at},
};

/// Returns times and values of the counter of a kind.
fn opened(bench: &Bench, kind: &str) -> Vec<(u64, f64)> {
    let attribute = format!("train.verdict.kind={kind}");
    let points = bench.points(&metric::TRAIN_OPENED_VERDICTS).into_iter();
    let points = points.filter(|point| point.attributes == [attribute.as_str()]);
    points.map(|point| (point.time, point.value)).collect()
}

/// Returns a run of 200 seconds whose loss is NaN in step 30, a verdict of 21 seconds.
fn run_with_a_short_verdict() -> Bench {
    let mut bench = bench(SignalsConfig::default());
    let mut trainer = Trainer::new("r", 0, 1);
    for number in 1..=200 {
        let end = at(number as f64);
        let loss = if number == 30 { f64::NAN } else { 2.0 };
        trainer.record(&metric::TRAIN_LOSS, end, loss);
        trainer
            .step(number, end, 1.0)
            .step_span(number, end, 1.0, &phases(1.0));
        bench.pass(&mut trainer);
    }
    bench.finish();
    bench
}

#[test]
fn opened_verdict_counters_start_at_zero_and_are_resent_every_minute() {
    let bench = run_with_a_short_verdict();
    for kind in ["loss_spike", "gpu_xid", "telemetry_lost"] {
        let points = opened(&bench, kind);
        assert_eq!(points[0], (START, 0.0), "{kind}");
        assert!(
            points.len() >= 4 && points.iter().all(|(_, value)| *value == 0.0),
            "{kind}: {points:?}"
        );
        let is_often = points.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 61 * SECOND);
        assert!(is_often, "{kind}: {points:?}");
    }
}

#[test]
fn short_verdict_remains_counted_after_it_closes() {
    let bench = run_with_a_short_verdict();
    let states = bench.events(&event::TRAIN_VERDICT);
    assert_eq!(states.len(), 2, "it has been opened and resolved: {states:?}");
    let points = opened(&bench, "nonfinite_loss");
    assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0), "{points:?}");
    let (before, after): (Vec<_>, Vec<_>) = points.iter().partition(|(time, _)| *time < at(30.0));
    assert!(
        !before.is_empty() && before.iter().all(|(_, value)| *value == 0.0),
        "{points:?}"
    );
    assert_eq!(after[0], (at(30.0), 1.0));
    assert!(
        after.len() >= 3 && after.iter().all(|(_, value)| *value == 1.0),
        "{points:?}"
    );
}

#[test]
fn verdict_count_of_the_first_step_is_preceded_by_zero() {
    let mut bench = bench(SignalsConfig::default());
    let mut trainer = Trainer::new("r", 0, 1);
    trainer.record(&metric::TRAIN_LOSS, at(1.0), f64::NAN);
    trainer
        .step(1, at(1.0), 1.0)
        .step_span(1, at(1.0), 1.0, &phases(1.0));
    bench.pass(&mut trainer).finish();
    assert_eq!(opened(&bench, "nonfinite_loss"), [(START, 0.0), (at(1.0), 1.0)]);
}
