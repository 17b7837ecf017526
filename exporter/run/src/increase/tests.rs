//! Known answers, and the property that the increases of a series add up to its total.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

fn sum(start: u64, time: u64, sum: f64) -> SeriesPoint {
    SeriesPoint {
        start: UnixNanos(start),
        time: UnixNanos(time),
        is_delta: false,
        count: None,
        sum,
    }
}

fn distribution(start: u64, time: u64, count: u64, total: f64) -> SeriesPoint {
    SeriesPoint {
        count: Some(count),
        ..sum(start, time, total)
    }
}

fn grown(tracker: &mut SeriesTracker, point: &SeriesPoint) -> Option<(IncreaseKind, f64)> {
    let increase = tracker.observe(point)?;
    Some((increase.kind, increase.sum))
}

#[test]
fn cumulative_sum_grows_between_points_and_begins_again_after_a_reset() {
    let mut tracker = SeriesTracker::default();
    let mut grown = |point| grown(&mut tracker, &point);
    assert_eq!(grown(sum(5, 10, 100.0)), Some((IncreaseKind::First, 100.0)));
    assert_eq!(grown(sum(5, 20, 130.0)), Some((IncreaseKind::Growth, 30.0)));
    assert_eq!(
        grown(sum(5, 30, 10.0)),
        Some((IncreaseKind::Reset, 10.0)),
        "a lower value"
    );
    assert_eq!(
        grown(sum(35, 40, 40.0)),
        Some((IncreaseKind::Reset, 40.0)),
        "a later start"
    );
    assert_eq!(grown(sum(5, 30, 10.0)), None, "a point before the last one");
    assert_eq!(grown(sum(5, 20, 130.0)), None, "a higher one of an earlier start");
    assert_eq!(grown(sum(35, 40, 40.0)), Some((IncreaseKind::Growth, 0.0)));
    assert_eq!(
        grown(sum(35, 39, 45.0)),
        Some((IncreaseKind::Growth, 5.0)),
        "the clock stepped back"
    );
}

#[test]
fn distribution_has_the_mean_of_its_new_observations() {
    let mut tracker = SeriesTracker::default();
    let mut mean = |point| tracker.observe(&point).and_then(|increase| increase.mean());
    assert_eq!(mean(distribution(5, 10, 1, 0.5)), Some(0.5));
    assert_eq!(mean(distribution(5, 10, 1, 0.5)), None, "nothing new");
    assert_eq!(mean(distribution(5, 20, 3, 1.5)), Some(0.5));
    assert_eq!(mean(distribution(25, 30, 1, 0.25)), Some(0.25));
    assert_eq!(mean(distribution(25, 40, 2, f64::NAN)), None, "no sum");
}

#[test]
fn first_point_is_recent_only_with_one_observation() {
    let is_recent = |point| SeriesTracker::default().observe(&point).unwrap().is_recent();
    assert!(is_recent(distribution(5, 10, 1, 0.5)));
    assert!(!is_recent(distribution(5, 10, 40, 8.0)));
    assert!(!is_recent(sum(5, 10, 8.0)));
    assert!(is_recent(SeriesPoint {
        is_delta: true,
        ..sum(5, 10, 8.0)
    }));
}

#[test]
fn interval_of_an_increase_begins_at_the_previous_point_or_at_the_start() {
    let mut tracker = SeriesTracker::default();
    let points = [sum(5, 10, 1.0), sum(5, 20, 2.0), sum(25, 30, 1.0)];
    let since = points.map(|point| tracker.observe(&point).unwrap().since);
    assert_eq!(since, [5, 10, 25].map(UnixNanos));
}

#[test]
fn delta_that_is_delivered_twice_counts_once() {
    let mut tracker = SeriesTracker::default();
    let deltas = [10, 20, 20, 30, 10].map(|time| SeriesPoint {
        is_delta: true,
        ..sum(time - 10, time, 1.0)
    });
    let total: f64 = deltas
        .iter()
        .filter_map(|delta| tracker.observe(delta))
        .map(|increase| increase.sum)
        .sum();
    assert_eq!(total, 3.0);
}

/// The observations between two resets: one list for each point.
#[derive(Clone, Debug)]
struct Attempt {
    points: Vec<Vec<u16>>,
}

/// A second delivery: after which point, and how many points.
type Repeat = (Index, usize);

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let points = vec(vec(0_u16..100, 0..5), 1..20);
    vec(points.prop_map(|points| Attempt { points }), 1..5)
}

/// Returns the points of the attempts. Each attempt has its own start.
fn points(attempts: &[Attempt], is_delta: bool, is_distribution: bool) -> Vec<SeriesPoint> {
    let mut points = Vec::new();
    let mut time = 100;
    for attempt in attempts {
        let mut start = time;
        let (mut count, mut total) = (0, 0.0);
        for observations in &attempt.points {
            time += 10;
            count += observations.len() as u64;
            total += observations.iter().copied().map(f64::from).sum::<f64>();
            points.push(SeriesPoint {
                start: UnixNanos(start),
                time: UnixNanos(time),
                is_delta,
                count: is_distribution.then_some(count),
                sum: total,
            });
            if is_delta {
                (count, total, start) = (0, 0.0, time);
            }
        }
        time += 5;
    }
    points
}

/// Returns the points in the order of a client that delivers some of them twice.
fn delivered(points: &[SeriesPoint], repeats: &[Repeat]) -> Vec<SeriesPoint> {
    let mut delivered = points.to_vec();
    for (after, len) in repeats {
        let end = after.index(points.len()) + 1;
        let again = &points[end.saturating_sub(*len)..end];
        let place = delivered.iter().rposition(|point| *point == points[end - 1]);
        let place = place.expect("invariant: every point is delivered") + 1;
        delivered.splice(place..place, again.iter().copied());
    }
    delivered
}

proptest! {
    #[test]
    fn increases_add_up_to_the_total_with_any_split_repeats_and_resets(
        attempts in attempts(),
        repeats in vec((any::<Index>(), 1_usize..6), 0..6),
        is_delta: bool,
        is_distribution: bool,
    ) {
        let observations = attempts.iter().flat_map(|attempt| attempt.points.iter().flatten());
        let total: f64 = observations.clone().copied().map(f64::from).sum();
        let points = points(&attempts, is_delta, is_distribution);
        let mut tracker = SeriesTracker::default();
        let (mut count, mut grown) = (0, 0.0);
        for point in delivered(&points, &repeats) {
            if let Some(increase) = tracker.observe(&point) {
                count += increase.count;
                grown += increase.sum;
            }
        }
        prop_assert_eq!(grown, total);
        let expected = if is_distribution { observations.count() as u64 } else { 0 };
        prop_assert_eq!(count, expected);
    }

    #[test]
    fn reset_without_a_start_is_seen_by_the_lower_value(
        first in vec(1_u16..100, 1..20),
        second in vec(1_u16..100, 1..20),
    ) {
        let mut tracker = SeriesTracker::default();
        let (mut time, mut grown) = (0, 0.0);
        let total = |values: &[u16]| values.iter().copied().map(f64::from).sum::<f64>();
        prop_assume!(f64::from(second[0]) < total(&first));
        for values in [&first, &second] {
            for end in 1..=values.len() {
                time += 10;
                let point = sum(0, time, total(&values[..end]));
                grown += tracker.observe(&point).map_or(0.0, |increase| increase.sum);
            }
        }
        prop_assert_eq!(grown, total(&first) + total(&second));
    }
}
