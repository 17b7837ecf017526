//! Limits of memory, staleness and clock skew.

use std::time::Duration;

use pulsetrain_pipeline::clock;
use tokio::time::advance;

use super::{otlp::*, *};

const MEGABYTE: usize = 1 << 20;

fn limited(max_bytes: usize) -> World {
    World::with(&PrometheusConfig {
        max_bytes,
        ..PrometheusConfig::default()
    })
}

fn counts(world: &World) -> crate::PrometheusCounts {
    world.sink.store().counts()
}

fn page_bytes(world: &World) -> usize {
    world.page(Format::Text, Escaping::AllowUtf8).len()
}

#[test]
fn long_resource_attributes_are_not_kept() {
    let mut world = limited(MEGABYTE);
    let long = "x".repeat(100_000);
    for number in 0..200 {
        let id = number.to_string();
        let resource = [
            ("service.name", "t"),
            ("service.instance.id", &id),
            ("env", &long),
            ("zone", "a"),
        ];
        world.take(from(&resource, vec![simple("g", T0, 1.0, &[])]));
    }
    assert!(counts(&world).bytes < 400_000, "{:?}", counts(&world));
    assert!(page_bytes(&world) < 100_000);
    assert!(
        world.samples("target_info")[0].contains("zone=\"a\""),
        "what fits is there"
    );
    // It would be on every series.
    let named = [("train.run.id", long.as_str())];
    let batch = from(&named, vec![simple("g", T0, 1.0, &[]), simple("h", T0, 1.0, &[])]);
    assert_eq!(world.rejected(batch), [(Rejection::LabelsTooLong, 2)]);
}

#[test]
fn long_names_descriptions_and_keys_are_not_kept() {
    let mut world = limited(MEGABYTE);
    let long = "x".repeat(100_000);
    for number in 0..50 {
        let name = format!("g{number}");
        let point = vec![self::number(0, T0, 1.0, &[])];
        world.take(one(metric(&name, "", &long, gauge(point.clone()))));
        // Only one character of the name is valid.
        let dropped = format!("a{}{number}", "花".repeat(30_000));
        let batch = one(unitless(&dropped, gauge(point.clone())));
        assert_eq!(world.rejected(batch), [(Rejection::LabelsTooLong, 1)]);
        let batch = one(metric("u", &long, "", gauge(point)));
        assert_eq!(world.rejected(batch), [(Rejection::LabelsTooLong, 1)]);
        let key = format!("{number}{long}");
        let batch = one(simple("k", T0, 1.0, &[(&key, "1")]));
        assert_eq!(world.rejected(batch), [(Rejection::LabelsTooLong, 1)]);
    }
    assert!(page_bytes(&world) < 75_000, "{}", page_bytes(&world));
    assert!(counts(&world).bytes < 150_000, "{:?}", counts(&world));
}

#[test]
fn memory_of_series_is_counted_and_released() {
    let mut world = limited(MEGABYTE);
    assert_eq!(counts(&world).bytes, 0);
    let long = "x".repeat(10_000);
    let labels = |number: usize| format!("{number}{long}");
    let series = |number| {
        let value = labels(number);
        let mut point = buckets(T0, T0, &[1.0, 2.0], &[1, 2, 3], 1.0);
        point.attributes = attributes(&[("l", &value)]);
        one(unitless("h", histogram(CUMULATIVE, point)))
    };
    let mut taken = 0;
    while world.rejected(series(taken)).is_empty() {
        taken += 1;
        assert!(taken < 200, "there is no end to it");
    }
    let full = counts(&world);
    assert!(taken > 90 && full.bytes <= full.max_bytes, "{taken} {full:?}");
    assert!(full.bytes > full.max_bytes - 20_000, "{full:?}");
    assert_eq!(world.rejected(series(taken)), [(Rejection::MemoryLimit, 1)]);
    // The metric that reports the limit has a reserve.
    world.take(one(simple("pulsetrain.dropped_items", T0, 1.0, &[])));
    for number in 0..taken {
        let value = labels(number);
        let mut end = buckets(T0, T0 + 1, &[], &[], 0.0);
        (end.flags, end.attributes) = (1, attributes(&[("l", &value)]));
        world.take(one(unitless("h", histogram(CUMULATIVE, end))));
    }
    assert!(counts(&world).bytes < 10_000, "{:?}", counts(&world));
    world.take(series(0));
}

#[test]
fn growth_of_a_series_counts_against_the_memory_limit() {
    let mut world = limited(100_000);
    let of = |time, count: usize| {
        let (bounds, counts) = (0..count)
            .map(|bound| (bound as f64, 1))
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let point = buckets(T0, time, &bounds, &[counts, vec![1]].concat(), 1.0);
        one(unitless("h", histogram(CUMULATIVE, point)))
    };
    world.take(of(T0, 1));
    assert_eq!(world.rejected(of(T0 + 1, 5_000)), [(Rejection::MemoryLimit, 1)]);
    assert_eq!(world.samples("h_bucket").len(), 2, "it is as it was");
    world.take(of(T0 + 2, 300));
    assert!(counts(&world).bytes > 300 * 16, "{:?}", counts(&world));
}

#[tokio::test(start_paused = true)]
async fn stale_series_expires_and_others_of_its_resource_remain() {
    let mut world = World::with(&PrometheusConfig {
        series_stale_after: Some(Duration::from_secs(300)),
        ..PrometheusConfig::default()
    });
    world.take(run(
        "r",
        vec![
            simple("g", T0, 1.0, &[("pid", "1")]),
            simple("g", T0, 1.0, &[("pid", "2")]),
        ],
    ));
    for second in 1..=31 {
        advance(Duration::from_secs(10)).await;
        world.take(one(simple("g", T0 + second, 1.0, &[("pid", "2")])));
    }
    // The end is detected within a twentieth of the time.
    advance(Duration::from_secs(15)).await;
    assert_eq!(world.samples("g"), ["g{pid=\"2\",train_run_id=\"r\"} 1"]);
    assert_eq!((counts(&world).expired, counts(&world).evicted), (1, 0));
}

/// For a label that changes often, such as a process id, the page shows the current series.
#[tokio::test(start_paused = true)]
async fn least_recently_sent_series_are_evicted_at_the_series_limit() {
    let mut world = World::with(&PrometheusConfig {
        series_limit: 600,
        ..PrometheusConfig::default()
    });
    let sent = |from: usize| {
        let points = (from..from + 200).map(|pid| number(0, 0, 1.0, &[("pid", &pid.to_string())]));
        one(unitless("g", gauge(points.collect())))
    };
    for round in 0..3 {
        world.take(sent(round * 200));
        advance(Duration::from_secs(100)).await;
    }
    world.take(sent(200));
    assert_eq!(
        world.rejected(sent(600)),
        [(Rejection::SeriesLimit, 200)],
        "all of them were sent lately"
    );
    advance(Duration::from_secs(150)).await;
    world.take(sent(600));
    let samples = world.samples("g");
    let has = |pid: usize| {
        samples
            .iter()
            .any(|sample| sample.contains(&format!("pid=\"{pid}\"")))
    };
    assert!(
        (200..400).all(has) && (600..800).all(has),
        "what was sent last is there"
    );
    assert!(!(0..200).any(has), "the longest silent are gone");
    assert_eq!((counts(&world).evicted, world.series()), (200, 600));
}

#[test]
fn point_ahead_of_the_clock_does_not_freeze_its_series() {
    let mut world = World::new();
    let present = clock::unix_now().as_nanos() as u64;
    world.take(one(simple("g", present + 50 * 60 * SECOND, 1.0, &[])));
    assert_eq!(counts(&world).ahead, 1);
    let late = one(simple("other", present + 50 * 60 * SECOND, 1.0, &[]));
    let delivered = now(pulsetrain_pipeline::Sink::deliver(
        &mut world.sink,
        &late.encode(),
    ));
    let pulsetrain_pipeline::Delivery::Partial { rejected: 0, problem } = delivered else {
        panic!("no warning: {delivered:?}");
    };
    let message = problem.to_string();
    assert!(
        message.contains("1 points are more than a minute ahead"),
        "{message}"
    );
    world.take(one(simple("g", clock::unix_now().as_nanos() as u64, 2.0, &[])));
    assert_eq!(world.samples("g"), ["g{train_run_id=\"r\"} 2"]);
    // Within the tolerance the order of the times counts.
    world.take(run(
        "r",
        vec![
            simple("h", present + 30 * SECOND, 1.0, &[]),
            simple("h", present + 20 * SECOND, 2.0, &[]),
        ],
    ));
    assert_eq!(world.samples("h"), ["h{train_run_id=\"r\"} 1"]);
    assert_eq!(counts(&world).ahead, 2);
}

/// Names with the same translation are looked up linearly.
#[test]
fn number_of_metrics_per_family_is_limited() {
    let mut world = World::new();
    let mut refused = 0;
    for number in 0..200 {
        let name = format!("a{}b", ".".repeat(number + 1));
        let batch = one(simple(&name, T0, 1.0, &[("l", &number.to_string())]));
        refused += world
            .rejected(batch)
            .iter()
            .map(|(_, points)| points)
            .sum::<u64>();
    }
    assert_eq!((world.samples("a_b").len(), refused), (64, 136));
}
