//! Sums and histograms over time: restarts, deltas, late points.

use super::{otlp::*, *};

fn counter(temporality: i32, start: u64, time: u64, value: f64) -> Batches {
    one(unitless(
        "x",
        sum(temporality, true, vec![number(start, time, value, &[])]),
    ))
}

fn durations(temporality: i32, time: u64, bounds: &[f64], counts: &[u64]) -> Batches {
    let point = buckets(T0, time, bounds, counts, counts.iter().sum::<u64>() as f64);
    one(metric("d", "s", "", histogram(temporality, point)))
}

#[test]
fn restart_resets_the_counter_with_its_start_time() {
    let mut world = World::new();
    world.take(counter(CUMULATIVE, T0, T0 + SECOND, 100.0));
    world.take(counter(CUMULATIVE, T0 + 5 * SECOND, T0 + 6 * SECOND, 3.0));
    assert_eq!(world.samples("x_total"), ["x_total{train_run_id=\"r\"} 3"]);
    // A late point of the first run does not decrease the counter.
    world.take(counter(CUMULATIVE, T0, T0 + 7 * SECOND, 101.0));
    assert_eq!(world.samples("x_total"), ["x_total{train_run_id=\"r\"} 3"]);
    assert!(created(&world).ends_with("5"), "{}", created(&world));
}

#[test]
fn decrease_without_a_new_start_time_is_a_reset_at_the_last_point() {
    let mut world = World::new();
    world.take(counter(CUMULATIVE, T0, T0 + SECOND, 100.0));
    world.take(counter(CUMULATIVE, T0, T0 + 2 * SECOND, 1.0));
    assert_eq!(world.samples("x_total"), ["x_total{train_run_id=\"r\"} 1"]);
    assert!(created(&world).ends_with("1"), "{}", created(&world));
}

/// Returns the seconds of the start time on the protobuf page: the field's tag, its length, and a varint of 5
/// bytes.
fn created(world: &World) -> String {
    let page = world.page(Format::Protobuf, Escaping::AllowUtf8);
    let place = page.windows(2).rposition(|pair| pair == [0x1a, 0x08].as_slice());
    let place = place.expect("the page has a start time");
    let seconds = page[place + 3..place + 8]
        .iter()
        .rev()
        .fold(0u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
    seconds.to_string()
}

#[test]
fn late_point_changes_nothing() {
    let mut world = World::new();
    world.take(one(simple("g", T0 + SECOND, 2.0, &[])));
    world.take(one(simple("g", T0, 1.0, &[])));
    assert_eq!(world.samples("g"), ["g{train_run_id=\"r\"} 2"]);
}

#[test]
fn point_with_a_far_future_time_does_not_block_later_points() {
    let mut world = World::new();
    world.take(one(simple("g", u64::MAX, 1.0, &[])));
    let in_a_minute = pulsetrain_pipeline::clock::unix_now().as_nanos() as u64 + 60 * SECOND;
    world.take(one(simple("g", in_a_minute, 2.0, &[])));
    assert_eq!(world.samples("g"), ["g{train_run_id=\"r\"} 2"]);
}

#[test]
fn point_without_a_time_gets_the_current_time() {
    let mut world = World::new();
    world.take(one(simple("g", T0, 1.0, &[])));
    world.take(one(simple("g", 0, 2.0, &[])));
    assert_eq!(world.samples("g"), ["g{train_run_id=\"r\"} 2"]);
}

#[test]
fn deltas_are_added_in_any_order() {
    let mut world = World::new();
    for (time, value) in [(1, 5.0), (3, 7.0), (2, 1.0)] {
        world.take(counter(
            DELTA,
            T0 + (time - 1) * SECOND,
            T0 + time * SECOND,
            value,
        ));
    }
    assert_eq!(world.samples("x_total"), ["x_total{train_run_id=\"r\"} 13"]);
}

#[test]
fn delta_that_is_delivered_twice_counts_once() {
    let mut world = World::new();
    for time in [1, 2, 1, 2] {
        world.take(counter(DELTA, T0 + (time - 1) * SECOND, T0 + time * SECOND, 5.0));
        world.take(durations(DELTA, T0 + time * SECOND, &[1.0], &[1, 2]));
    }
    assert_eq!(world.samples("x_total"), ["x_total{train_run_id=\"r\"} 10"]);
    assert_eq!(
        world.samples("d_seconds_count"),
        ["d_seconds_count{train_run_id=\"r\"} 6"]
    );
}

#[test]
fn histogram_deltas_are_added_and_new_bounds_reset_the_counts() {
    let mut world = World::new();
    world.take(durations(DELTA, T0 + 1, &[1.0, 2.0], &[1, 2, 3]));
    world.take(durations(DELTA, T0 + 2, &[1.0, 2.0], &[1, 0, 0]));
    let label = "train_run_id=\"r\"";
    assert_eq!(
        world.samples("d_seconds_bucket"),
        [("1", 2), ("2", 4), ("+Inf", 7)]
            .map(|(le, count)| format!("d_seconds_bucket{{{label},le=\"{le}\"}} {count}"))
    );
    assert_eq!(
        world.samples("d_seconds_sum"),
        [format!("d_seconds_sum{{{label}}} 7")]
    );
    world.take(durations(DELTA, T0 + 3, &[5.0], &[1, 1]));
    assert_eq!(
        world.samples("d_seconds_count"),
        [format!("d_seconds_count{{{label}}} 2")]
    );
}

#[test]
fn deltas_of_exponential_histograms_are_added() {
    let mut world = World::new();
    for (scale, counts) in [(3, &[1, 2][..]), (3, &[4]), (1, &[1])] {
        world.take(one(metric("n", "s", "", exponential(DELTA, scale, 0, counts))));
    }
    let count = world.samples("n_seconds_count");
    assert_eq!(count, ["n_seconds_count{train_run_id=\"r\"} 17"]);
    assert_eq!(world.series(), 1);
}

#[test]
fn deltas_that_cannot_be_summed_are_rejected_and_counted() {
    let mut world = World::new();
    assert_eq!(
        world.rejected(counter(0, T0, T0, 1.0)),
        [(Rejection::Temporality, 1)]
    );
    assert_eq!(world.series(), 0);
}

#[test]
fn native_histogram_is_downscaled_if_too_fine_and_rejected_if_too_coarse() {
    let mut world = World::new();
    // Scale 10 has four buckets for each of schema 8.
    let fine = exponential(CUMULATIVE, 10, -2, &[1, 1, 1, 1, 1, 1, 1, 1]);
    world.take(one(metric("n", "s", "", fine)));
    assert_eq!(
        world.samples("n_seconds_count"),
        ["n_seconds_count{train_run_id=\"r\"} 11"]
    );
    let page = format!("{:?}", world.page(Format::Protobuf, Escaping::AllowUtf8));
    // The spans: first bucket at index 0, three of them; then 2, +2, -2 observations, zigzag.
    assert!(page.contains("98, 4, 8, 0, 16, 3, 106, 3, 4, 4, 3"), "{page}");
    let coarse = one(metric("m", "s", "", exponential(CUMULATIVE, -5, 0, &[1])));
    assert_eq!(world.rejected(coarse), [(Rejection::Malformed, 1)]);
}
