//! TensorBoard's event files of six runs by three writers: tensorboardX, torch, and metrax over tensorboardX.

use std::collections::BTreeMap;

use pulsetrain_sources::SkipReason;

use crate::{
    Imported,
    imported::{Point, attributes, sample},
    series::{self, Series},
    upstream::{self, EventFile, Scalar},
};

const KEMPNERFORGE: &str = "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0";
const HF_TRAINER: &str = "hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0";
const MAXTEXT: &str = "maxtext/tensorboard/events.out.tfevents.1795221261.vm";
const TORCHSPEC: &str = "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0";
const TUNIX: [&str; 2] = [
    "tunix/colocated/tensorboard/events.out.tfevents.1795219881.vm",
    "tunix/rollout1_actor2/tensorboard/events.out.tfevents.1795219969.vm",
];

/// What a tag is left out by, if it is.
fn rule(scalar: &Scalar) -> Option<&'static str> {
    if scalar.tag.starts_with("jax/core/compile/") {
        return Some("jax_time_of_day");
    }
    let says_step = ["train/step", "train/global_step", "inference/step"].contains(&scalar.tag.as_str());
    (says_step && scalar.value == scalar.step as f64).then_some("step_again")
}

/// Holds an import of `name` to what an independent decoder finds in it.
fn every_value_arrives_once(name: &str) -> (Imported, EventFile) {
    let file = upstream::event_file(&sample(name));
    let imported = Imported::of("tensorboard", name);
    let mut expected: BTreeMap<String, Vec<&Scalar>> = BTreeMap::new();
    let mut left_out: BTreeMap<&str, u64> = BTreeMap::new();
    for scalar in &file.scalars {
        match rule(scalar) {
            Some(rule) => *left_out.entry(rule).or_default() += 1,
            None => expected.entry(scalar.tag.clone()).or_default().push(scalar),
        }
    }
    for (tag, scalars) in &expected {
        is_series(&imported, tag, scalars);
    }
    let count: usize = expected.values().map(Vec::len).sum();
    assert_eq!(imported.measured(), count, "points of {name}");
    let rules = imported
        .skipped
        .counts()
        .filter(|(reason, _)| *reason != SkipReason::UnknownName);
    let rules: BTreeMap<_, _> = rules.map(|(reason, count)| (reason.as_str(), count)).collect();
    assert_eq!(rules, left_out);
    assert_eq!(imported.counts.records as usize, file.events);
    assert_eq!(imported.events.len(), file.texts.len());
    imported.lost_nothing();
    (imported, file)
}

/// The points of a tag's series are its numbers, each at its own time.
fn is_series(imported: &Imported, tag: &str, scalars: &[&Scalar]) {
    let series = series::of(tag);
    // A sum takes no negative time, so such a number keeps its own name.
    let takes_negative = !series.metric.ends_with("_gap_time");
    let (own, custom): (Vec<&Scalar>, Vec<&Scalar>) = scalars
        .iter()
        .copied()
        .partition(|scalar| takes_negative || scalar.value >= 0.0);
    holds(imported, tag, &series, &own);
    if !custom.is_empty() {
        holds(imported, tag, &series::custom(tag), &custom);
    }
}

fn holds(imported: &Imported, tag: &str, series: &Series, scalars: &[&Scalar]) {
    let is_of_series = |point: &&Point| {
        point.metric == series.metric
            && point.attributes.len() == series.attributes.len()
            && series
                .attributes
                .iter()
                .all(|(key, value)| point.attributes.get(key) == Some(value))
    };
    let points: Vec<&Point> = imported.points.iter().filter(is_of_series).collect();
    assert_eq!(points.len(), scalars.len(), "{tag}");
    let mut sum = 0.0;
    for (point, scalar) in points.iter().zip(scalars) {
        let value = scalar.value * series.factor;
        sum += value;
        let expected = if point.is_sum && !series.is_total {
            sum
        } else {
            value
        };
        assert!(
            (point.value - expected).abs() <= 1e-9 * expected.abs(),
            "{tag}: {} and {expected}",
            point.value
        );
        assert_eq!(point.time, scalar.time, "{tag}");
    }
}

/// Every step has one `train.global_step`, at the time of its first number.
fn every_step_is_said_once(imported: &Imported, file: &EventFile) {
    let mut expected: Vec<(u64, f64)> = Vec::new();
    for scalar in file
        .scalars
        .iter()
        .filter(|scalar| rule(scalar) != Some("jax_time_of_day"))
    {
        if expected.last().is_none_or(|(_, step)| scalar.step as f64 > *step) {
            expected.push((scalar.time, scalar.step as f64));
        }
    }
    let steps = imported
        .points
        .iter()
        .filter(|point| point.metric == "train.global_step");
    let steps: Vec<_> = steps.map(|point| (point.time, point.value)).collect();
    assert_eq!(steps, expected);
}

#[test]
fn kempnerforge_by_torch() {
    let (imported, file) = every_value_arrives_once(KEMPNERFORGE);
    every_step_is_said_once(&imported, &file);
    assert_eq!((file.scalars.len(), imported.measured()), (188, 188));
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn the_trainer_of_hugging_face_by_torch() {
    let (imported, file) = every_value_arrives_once(HF_TRAINER);
    every_step_is_said_once(&imported, &file);
    assert_eq!(imported.unknown_names(), [""; 0]);
    assert_eq!(imported.values("train.tokens").last(), Some(&2560.0));
    let names: Vec<_> = imported
        .events
        .iter()
        .map(|event| event["eventName"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["run.config", "run.option"]);
    let body = imported.events[0]["body"]["stringValue"]
        .as_str()
        .unwrap_or_default();
    assert_eq!(body, file.texts[0].1);
}

#[test]
fn maxtext_by_tensorboardx_with_its_configuration() {
    let (imported, file) = every_value_arrives_once(MAXTEXT);
    every_step_is_said_once(&imported, &file);
    assert_eq!(file.texts.len(), 777);
    for (event, (tag, text)) in imported.events.iter().zip(&file.texts) {
        let attributes = attributes(event);
        assert_eq!(format!("{}/text_summary", attributes["run.option.name"]), *tag);
        assert_eq!(attributes["run.option.value"], *text);
    }
    // The tokens of one device are not those of the run.
    let name = [("train.custom.name", "perf/per_device_tokens")];
    assert_eq!(imported.values_with("train.custom", &name).len(), 12);
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn torchspec_by_torch() {
    let (imported, file) = every_value_arrives_once(TORCHSPEC);
    every_step_is_said_once(&imported, &file);
    assert_eq!(file.scalars.len(), imported.measured() + 3 * 40);
    assert_eq!(imported.unknown_names(), [""; 0]);
}

#[test]
fn tunix_by_metrax() {
    for (name, of_jax) in TUNIX.into_iter().zip([141, 150]) {
        let (imported, file) = every_value_arrives_once(name);
        every_step_is_said_once(&imported, &file);
        assert_eq!(file.scalars.len(), imported.measured() + of_jax);
    }
}
