//! Logs of trainers whose formats are mapping files. The expectations are written from the code that produced the samples,
//! see `tests/corpus/trainers/README.md`.

mod expected;
mod nvidia;

use std::{collections::BTreeSet, env, fmt::Write, fs, path::Path};

use pulsetrain_formats::detect;

use self::{expected::SAMPLES, nvidia::NVIDIA};
use crate::{
    Imported,
    imported::{Point, all_samples, sample, sample_text},
};

/// The folder of the samples in the corpus.
const FOLDER: &str = "trainers/";

/// A sample, and the values of some of its series.
struct Sample {
    file: &'static str,
    format: &'static str,
    series: &'static [(&'static str, &'static [f64])],
}

/// The trainers with the folders of their samples and the formats that read them.
const TRAINERS: &[(&str, &str, &str)] = &[
    ("verl", "verl", "`verl`"),
    ("nanoGPT", "nanogpt", "`nanogpt`"),
    ("nanochat", "nanochat", "`nanochat`"),
    ("DeepSpeed", "deepspeed", "`deepspeed`"),
    ("LLaMA-Factory", "llamafactory", "`llamafactory`"),
    ("Lightning", "lightning", "`lightning`"),
    ("torchtune", "torchtune", "`torchtune`"),
    ("OpenRLHF", "openrlhf", "`openrlhf`"),
    ("litgpt", "litgpt", "`litgpt`, `lightning`"),
    ("Composer", "composer", "`composer`"),
    ("llm.c", "llmc", "`llmc`"),
    ("Keras", "keras", "`keras`"),
    ("TRL", "trl", "`hf-trainer`"),
    ("axolotl", "axolotl", "`hf-trainer`"),
    ("ms-swift", "ms-swift", "`hf-trainer`"),
    ("Megatron-Bridge", "megatron-bridge", "`megatron`"),
    ("EasyR1", "easyr1", "`easyr1`"),
    ("NeMo", "nemo", "`nemo`"),
    ("nv-one-logger", "nv-one-logger", "`nv-one-logger`"),
    ("Unsloth", "unsloth", "`hf-trainer`"),
    ("NCCL Inspector", "nccl-inspector", "`nccl-inspector`"),
];

#[test]
fn every_sample_of_a_trainer_is_recognised_and_its_series_have_the_values_that_were_logged() {
    let problems: Vec<String> = SAMPLES.iter().chain(NVIDIA).flat_map(problems).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Returns the differences between a sample and its expectation.
fn problems(expected: &Sample) -> Vec<String> {
    let name = [FOLDER, expected.file].concat();
    let recognised = detect(&name, &sample(&name)).map(|(format, _)| format.name);
    if !recognised.as_ref().is_ok_and(|format| *format == expected.format) {
        return vec![format!("{name} is recognised as {recognised:?}")];
    }
    let imported = Imported::by(expected.format, &name);
    let mut problems = Vec::new();
    if imported.skipped.has_losses() {
        problems.push(format!("{name}: {:?}", imported.skipped.problems()));
    }
    for (series, expected) in expected.series {
        let found = values(&imported, series);
        let is_same = |(found, expected): (&f64, &f64)| {
            (found - expected).abs() <= 1e-9 * expected.abs() || (found.is_nan() && expected.is_nan())
        };
        if found.len() != expected.len() || !found.iter().zip(*expected).all(is_same) {
            problems.push(format!("{series} of {name} is {found:?}, not {expected:?}"));
        }
    }
    problems
}

#[test]
fn every_file_of_the_trainers_has_an_expectation() {
    let found: BTreeSet<String> = all_samples()
        .into_iter()
        .filter_map(|name| Some(name.strip_prefix(FOLDER)?.to_owned()))
        .filter(|name| name != "README.md" && !name.ends_with("keys.txt"))
        .collect();
    let expected: BTreeSet<String> = SAMPLES
        .iter()
        .chain(NVIDIA)
        .map(|sample| sample.file.to_owned())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn the_documented_coverage_of_trainers_is_that_of_their_samples() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("TRAINERS.md");
    let expected = page();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).expect("UPDATE_GOLDEN=1 writes the page");
    assert!(
        found == expected,
        "TRAINERS.md is not up to date; UPDATE_GOLDEN=1 writes it"
    );
}

/// The values of a series such as `rl.reward{rl.statistic=mean}`; of a sum the growth.
fn values(imported: &Imported, series: &str) -> Vec<f64> {
    let of_series = imported.points.iter().filter(|point| name_of(point) == series);
    let mut before = 0.0;
    let grown = |point: &Point| {
        let growth = if point.is_sum {
            point.value - before
        } else {
            point.value
        };
        before = point.value;
        growth
    };
    of_series.map(grown).collect()
}

fn name_of(point: &Point) -> String {
    let attributes: Vec<String> = point
        .attributes
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    match attributes.is_empty() {
        true => point.metric.clone(),
        false => format!("{}{{{}}}", point.metric, attributes.join(",")),
    }
}

/// How many keys of each trainer become metrics of the registry.
fn page() -> String {
    let mut page = String::from(
        "# Trainers that are read without configuration\n\n\
         Written by `UPDATE_GOLDEN=1 cargo test -p pulsetrain-formats --test formats`. A trainer is one file in `mappings/`, in the grammar\n\
         of [MAPPING.md](MAPPING.md); [FORMATS.md](FORMATS.md) lists what becomes of each key.\n\n\
         The keys are the numbers that the trainer's own code can log, from `tests/corpus/trainers/*/keys.txt`. Numbers that repeat another\n\
         one, or count what is no measurement, are left out. `train.custom` has the names of the keys that it keeps.\n\n\
         | trainer | format | keys | metrics of the registry | `train.custom` | left out | share |\n|---|---|---|---|---|---|---|\n",
    );
    for (trainer, folder, formats) in TRAINERS {
        let keys = sample_text(&format!("{FOLDER}{folder}/keys.txt"));
        let (left_out, kept): (Vec<&str>, Vec<&str>) = keys.lines().partition(|key| key.starts_with("- "));
        let custom = custom_names(folder).len();
        let known = kept.len() - custom;
        writeln!(
            page,
            "| {trainer} | {formats} | {} | {known} | {custom} | {} | {} % |",
            kept.len() + left_out.len(),
            left_out.len(),
            100 * known / kept.len()
        )
        .expect("invariant: a String takes all");
    }
    page
}

/// The names under `train.custom` in the samples of a folder.
fn custom_names(folder: &str) -> BTreeSet<String> {
    let names = all_samples();
    let samples = names.iter().filter(|name| {
        name.strip_prefix(FOLDER)
            .and_then(|name| name.strip_prefix(folder))
            .is_some_and(|rest| rest.starts_with('/') && !rest.ends_with("keys.txt"))
    });
    let mut customs = BTreeSet::new();
    for name in samples {
        let bytes = sample(name);
        let (format, _) = detect(name, &bytes).expect("a sample is recognised");
        let imported = Imported::without_golden(format.name, name);
        let points = imported
            .points
            .iter()
            .filter(|point| point.metric == "train.custom");
        customs.extend(points.map(|point| point.attributes["train.custom.name"].clone()));
    }
    customs
}
