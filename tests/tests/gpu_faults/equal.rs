//! One tick by both ways out: every series of the file is on the page under its translated name with its value, and the
//! page has nothing else.

use std::collections::BTreeMap;

use pulsetrain_tests::wait_until;

use crate::{
    page::{fetch, label, name_of, samples},
    point::Point,
    world::World,
};

type Series = BTreeMap<(String, BTreeMap<String, String>), f64>;

#[test]
fn one_tick_of_eight_gpus_is_the_same_in_the_file_and_on_the_page() {
    let Some(world) = World::start("h100x8", "") else {
        return;
    };
    world.fake.at(33.0);
    let heat = [("gpu.index", "7"), ("gpu.temperature.sensor", "gpu")];
    world.wait_both("gpu.temperature", &heat, |value| value == 51.0);
    let mut differences = Vec::new();
    // The clock rests, so every tick has the same values; only between two writes can one be ahead of the other.
    wait_until("the file and the page agree, or never will", || {
        differences = differing(&world.with_points(of_file), &of_page(&fetch(world.page)));
        differences.is_empty() || world.points("gpu.memory.used", &[("gpu.index", "0")]).len() > 60
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let series = world.with_points(of_file).len();
    assert!(series > 2_000, "only {series} series were compared");
}

/// The last value of every series that has not ended, under its name and labels on a page.
fn of_file(points: &[Point]) -> Series {
    let mut series = Series::new();
    for point in points
        .iter()
        .filter(|point| point.name.starts_with("gpu.") && !point.unit.is_empty())
    {
        let labels = point
            .attributes
            .iter()
            .map(|(key, value)| (label(key), value.clone()));
        let key = (name_of(point), labels.collect());
        match point.value.filter(|_| !point.ends) {
            Some(value) => series.insert(key, value),
            None => series.remove(&key),
        };
    }
    series
}

/// What a page has of GPUs, without what it adds: labels of the resource, buckets and sums of histograms.
fn of_page(page: &str) -> Series {
    let own = |(name, _): &(String, BTreeMap<String, String>)| {
        name.starts_with("gpu_") && !name.ends_with("_bucket") && !name.ends_with("_sum")
    };
    samples(page)
        .into_iter()
        .filter(|(key, _)| own(key))
        .map(|((name, mut labels), value)| {
            labels.retain(|key, _| {
                !["host_name", "instance", "job", "service_instance_id"].contains(&key.as_str())
            });
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
    missing
        .chain(extra.map(|key| format!("{key:?} is on the page alone")))
        .take(20)
        .collect()
}
