//! One tick through both outputs: every series of the file is on the page under its translated name with its value, and the
//! page has no other series.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_tests::{some_or_return, wait_at_most};

use crate::{
    gpu_faults::{
        page::{fetch, label, name_of, samples},
        world::World,
    },
    point::Point,
};

type Key = (String, BTreeMap<String, String>);
type Series = BTreeMap<Key, f64>;

#[test]
fn one_tick_of_eight_gpus_is_equal_in_the_file_and_on_the_page() {
    assert_equal("gpu", 2_000);
}

#[test]
fn one_tick_with_hw_semconv_is_equal_in_the_file_and_on_the_page() {
    assert_equal("both", 2_500);
}

fn assert_equal(semconv: &str, at_least: usize) {
    let world = some_or_return!(World::named("h100x8", "", semconv));
    world.fake.at(33.0);
    let heat = [("gpu.index", "7"), ("gpu.temperature.sensor", "gpu")];
    world.wait_value("gpu.temperature", &heat, 51.0);
    let mut differences = Vec::new();
    // The clock is stopped, so every tick has the same values; only between two writes can one output be ahead of the other.
    let are_equal = wait_at_most(Duration::from_secs(120), || {
        differences = differing(&world.with_points(of_file), &of_page(&fetch(world.page)));
        differences.is_empty()
    });
    assert!(are_equal, "{}", differences.join("\n"));
    let series = world.with_points(of_file).len();
    assert!(series > at_least, "only {series} series were compared");
}

/// Returns the last value of every series that has not ended, under its name and labels on a page.
fn of_file(points: &[Point]) -> Series {
    let mut series = Series::new();
    let of_gpu = |point: &&Point| ["gpu.", "hw."].iter().any(|room| point.name.starts_with(room));
    for point in points
        .iter()
        .filter(of_gpu)
        .filter(|point| !point.unit.is_empty())
    {
        for (key, value) in samples_of(point) {
            match point.ends {
                true => series.remove(&key),
                false => series.insert(key, value),
            };
        }
    }
    series
}

/// Returns the samples of a point on a page: for a histogram its count, its sum and its buckets.
fn samples_of(point: &Point) -> Vec<(Key, f64)> {
    let labels: BTreeMap<_, _> = point
        .attributes
        .iter()
        .map(|(key, value)| (label(key), value.clone()))
        .collect();
    let name = name_of(point);
    let mut all = vec![((name.clone(), labels.clone()), point.value)];
    if let (Some(histogram), Some(of_all)) = (&point.histogram, name.strip_suffix("_count")) {
        all.push(((format!("{of_all}_sum"), labels.clone()), point.sum));
        let bounds = histogram.bounds.iter().copied().chain([f64::INFINITY]);
        let mut so_far = 0.0;
        for (bound, count) in bounds.zip(&histogram.counts) {
            so_far += count;
            let mut labels = labels.clone();
            labels.insert("le".to_owned(), bound.to_string());
            all.push(((format!("{of_all}_bucket"), labels), so_far));
        }
    }
    all
}

/// Returns the samples of GPUs on a page, without the labels of the resource.
fn of_page(page: &str) -> Series {
    let own = |(name, _): &Key| name.starts_with("gpu_") || name.starts_with("hw_");
    samples(page)
        .into_iter()
        .filter(|(key, _)| own(key))
        .map(|((name, mut labels), value)| {
            labels.retain(|key, _| {
                !["host_name", "instance", "job", "service_instance_id"].contains(&key.as_str())
            });
            // A bound may be formatted in different ways.
            if let Some(bound) = labels.get_mut("le") {
                let number: f64 = bound.replace("+Inf", "inf").parse().expect("a bound is a number");
                *bound = number.to_string();
            }
            ((name, labels), value)
        })
        .collect()
}

fn differing(file: &Series, page: &Series) -> Vec<String> {
    let missing = file.iter().filter_map(|(key, value)| match page.get(key) {
        Some(there) if there == value => None,
        there => Some(format!(
            "{key:?} is {value} in the file and {there:?} on the page"
        )),
    });
    let extra = page.keys().filter(|key| !file.contains_key(*key));
    let extra = extra.map(|key| format!("{key:?} is on the page alone"));
    missing.take(10).chain(extra.take(10)).collect()
}
