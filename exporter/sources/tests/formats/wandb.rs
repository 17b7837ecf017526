//! A wandb file of TorchSpec, as the library left it without a network.

use std::collections::BTreeMap;

use crate::{
    Imported,
    imported::{Point, attributes, sample},
    series,
    upstream::{self, Wire},
};

const FILE: &str = "torchspec/perf.wandb";
/// Fields of `Record`.
const HISTORY: u64 = 2;
const STATS: u64 = 7;
const RUN: u64 = 17;
/// Keys that say the step again, or the time.
const NO_VALUES: [&str; 6] = [
    "train/step",
    "train/global_step",
    "inference/step",
    "_step",
    "_timestamp",
    "_runtime",
];

/// The messages in `field` of the records.
fn messages(field: u64) -> Vec<Vec<u8>> {
    let records = upstream::wandb_records(&sample(FILE));
    let of_field = |record: &Vec<u8>| {
        let found = upstream::fields(record)
            .into_iter()
            .find(|(number, _)| *number == field);
        found.map(|(_, value): (u64, Wire<'_>)| value.bytes().to_vec())
    };
    records.iter().filter_map(of_field).collect()
}

fn points_of<'i>(imported: &'i Imported, key: &str) -> Vec<&'i Point> {
    let series = series::of(key);
    let has_all = |point: &&Point| {
        point.metric == series.metric
            && point.attributes.len() == series.attributes.len()
            && series
                .attributes
                .iter()
                .all(|(key, value)| point.attributes.get(key) == Some(value))
    };
    imported.points.iter().filter(has_all).collect()
}

#[test]
fn every_value_arrives_once_at_its_own_time() {
    let imported = Imported::of("wandb", FILE);
    let mut upstream: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for history in messages(HISTORY) {
        let items = upstream::items(&history, 1);
        let number = |key: &str| {
            let found = items.iter().find(|(found, _)| found == key);
            found.map(|(_, json)| json.parse::<f64>().expect("a number"))
        };
        let time = number("_timestamp").expect("a history has a time");
        for (key, _) in items.iter().filter(|(key, _)| !NO_VALUES.contains(&key.as_str())) {
            let value = number(key).expect("it is there");
            upstream.entry(key.clone()).or_default().push((time, value));
        }
    }
    let mut count = 0;
    for (key, values) in &upstream {
        let points = points_of(&imported, key);
        assert_eq!(points.len(), values.len(), "{key}");
        let mut sum = 0.0;
        for (point, (time, value)) in points.iter().zip(values) {
            sum += value;
            let expected = if point.is_sum { sum } else { *value };
            assert!((point.value - expected).abs() <= 1e-9 * expected.abs(), "{key}");
            assert!((point.time as f64 / 1e9 - time).abs() < 1e-6, "{key}");
        }
        count += values.len();
    }
    let machine: usize = messages(STATS)
        .iter()
        .map(|stats| upstream::items(stats, 3).len())
        .sum();
    assert_eq!((machine, count), (12, 1111));
    assert_eq!(imported.measured(), count + machine);
    imported.lost_nothing();
}

#[test]
fn steps_are_those_of_the_trainer_and_not_those_of_wandb() {
    let imported = Imported::of("wandb", FILE);
    let expected: Vec<f64> = (1..=40).map(f64::from).collect();
    assert_eq!(imported.values("train.global_step"), expected);
}

#[test]
fn the_configuration_is_one_option_a_key() {
    let imported = Imported::of("wandb", FILE);
    let runs = messages(RUN);
    let config = upstream::fields(&runs[0])
        .into_iter()
        .find(|(number, _)| *number == 4);
    let mut expected = upstream::items(config.expect("a run has a configuration").1.bytes(), 1);
    expected.retain(|(key, _)| key != "_wandb");
    let options: Vec<_> = imported.events.iter().map(attributes).collect();
    assert_eq!(options.len(), expected.len());
    for (option, (key, json)) in options.iter().zip(expected) {
        assert_eq!(option["run.option.name"], key);
        let expected = if json == "null" {
            ""
        } else {
            json.trim_matches('"')
        };
        assert_eq!(option["run.option.value"], expected, "{key}");
    }
}

#[test]
fn what_is_left_out_is_counted_by_rule() {
    let imported = Imported::of("wandb", FILE);
    let rules: BTreeMap<_, _> = imported
        .skipped
        .counts()
        .map(|(reason, count)| (reason.as_str(), count))
        .collect();
    // What the program printed is 63 records; three keys a history say the time and wandb's own count.
    assert_eq!((rules["console_output"], rules["step_again"]), (63, 3 * 40));
    let clock = 3 * messages(HISTORY).len();
    assert!(rules["wandb_clock"] as usize >= clock && rules.contains_key("wandb_summary"));
}
