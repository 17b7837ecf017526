//! The ends of series: by flag and by staleness. No series stays forever.

use std::time::Duration;

use tokio::time::advance;

use super::{otlp::*, *};

#[test]
fn series_ends_with_the_no_recorded_value_flag_and_may_start_again() {
    let mut world = World::new();
    world.take(run(
        "r",
        vec![
            simple("g", T0, 1.0, &[("a", "1")]),
            simple("g", T0, 2.0, &[("a", "2")]),
        ],
    ));
    world.take(one(end("g", T0 + 1, &[("a", "1")])));
    assert_eq!(world.samples("g"), ["g{a=\"2\",train_run_id=\"r\"} 2"]);
    world.take(one(simple("g", T0 + 2, 3.0, &[("a", "1")])));
    assert_eq!(world.samples("g").len(), 2);
}

#[test]
fn end_marker_older_than_the_last_point_is_ignored() {
    let mut world = World::new();
    world.take(one(simple("g", T0 + 1, 1.0, &[])));
    world.take(run("r", vec![end("g", T0, &[]), end("never_there", T0, &[])]));
    assert_eq!(world.series(), 1);
}

#[tokio::test(start_paused = true)]
async fn series_of_a_silent_run_expire_and_those_of_other_runs_do_not() {
    let mut world = World::new();
    world.take(run(
        "silent",
        vec![simple("loss", T0, 1.0, &[]), simple("norm", T0, 1.0, &[])],
    ));
    world.take(run(
        "alive",
        vec![simple("loss", T0, 1.0, &[]), simple("constant", T0, 1.0, &[])],
    ));
    for second in 1..=601 {
        advance(Duration::from_secs(1)).await;
        // One of its series continues, so the others are still exposed.
        world.take(run("alive", vec![simple("loss", T0 + second, 1.0, &[])]));
    }
    assert_eq!(world.samples("loss"), ["loss{train_run_id=\"alive\"} 1"]);
    assert_eq!(world.samples("constant").len(), 1);
    assert_eq!(world.series(), 2);
    assert_eq!(world.sink.store().counts().ended_with_resource, 2);
}

#[tokio::test(start_paused = true)]
async fn target_info_is_exposed_as_long_as_the_target_has_series() {
    let target = |metrics| from(&[("service.name", "t"), ("train.framework", "f")], metrics);
    let mut world = World::new();
    world.take(target(vec![simple("g", T0, 1.0, &[])]));
    assert_eq!(
        world.samples("target_info"),
        ["target_info{job=\"t\",train_framework=\"f\"} 1"]
    );
    world.take(target(vec![end("g", T0 + 1, &[])]));
    assert_eq!(world.samples("target_info"), [""; 0]);
    assert_eq!(world.page(Format::Text, Escaping::Underscores), b"");
}

#[test]
fn target_info_of_a_restarted_rank_is_that_of_its_latest_attempt() {
    let attempt = |attempt, time| {
        let resource = [
            ("service.name", "t"),
            ("service.instance.id", "i"),
            ("train.attempt", attempt),
        ];
        from(&resource, vec![simple("g", time, 1.0, &[])])
    };
    let mut world = World::new();
    world.take(attempt("1", T0));
    world.take(attempt("2", T0 + 1));
    assert_eq!(
        world.samples("target_info"),
        ["target_info{instance=\"i\",job=\"t\",train_attempt=\"2\"} 1"]
    );
    assert_eq!(
        world.samples("g"),
        ["g{instance=\"i\",job=\"t\",service_instance_id=\"i\",train_attempt=\"2\"} 1"]
    );
    assert_eq!(world.series(), 1, "the series of the killed attempt has ended");
    assert_eq!(world.sink.store().counts().ended_with_resource, 1);
}

/// Runs of 5 to 60 minutes start every two minutes for a day. Half of them end properly, and half are killed.
#[tokio::test(start_paused = true)]
async fn no_series_remains_after_a_day_of_short_runs() {
    let mut world = World::new();
    let mut most = 0;
    let runs: Vec<(u64, u64)> = (0..720)
        .map(|run| (run * 2, run * 2 + 5 + run * 7 % 55))
        .collect();
    for minute in 0..24 * 60 {
        let time = T0 + minute * 60 * SECOND;
        for (id, (begin, end_minute)) in runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.0 <= minute && minute <= run.1)
        {
            let name = format!("run-{id}");
            let labels = [("file", name.as_str())];
            world.take(run(
                &name,
                vec![
                    simple("loss", time, *begin as f64, &[]),
                    simple("data", time, 1.0, &labels),
                ],
            ));
            if minute == *end_minute && id % 2 == 0 {
                world.take(run(
                    &name,
                    vec![end("loss", time, &[]), end("data", time, &labels)],
                ));
            }
        }
        advance(Duration::from_secs(60)).await;
        most = most.max(world.series());
    }
    // At most 30 concurrent runs, and those of the last 10 minutes that were killed.
    assert!((20..=2 * (30 + 5 + 1)).contains(&most), "{most}");
    advance(Duration::from_secs(601)).await;
    assert_eq!(world.page(Format::Text, Escaping::Underscores), b"");
    assert_eq!(world.series(), 0);
}
