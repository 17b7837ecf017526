//! Logs of trainers whose formats are mapping files. The expectations are written from the code that produced the samples,
//! see `tests/corpus/trainers/README.md`.

mod expected;
mod keys;

use std::{collections::BTreeSet, fmt::Write};

use pulsetrain_formats::detect;

use self::{expected::SAMPLES, keys::Outcome};
use crate::{
    Imported,
    imported::{WRITE_GOLDEN, all_samples, attributes, is_golden, sample},
    value_table::{Sample, are_same, samples},
};

/// The folder of the samples in the corpus.
const FOLDER: &str = "trainers/";

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
    ("NeMo Lens", "nemo-lens", "`nemo-lens`"),
    ("nv-one-logger", "nv-one-logger", "`nv-one-logger`"),
    ("Unsloth", "unsloth", "`hf-trainer`"),
    ("NCCL Inspector", "nccl-inspector", "`nccl-inspector`"),
    ("RCCL Inspector", "rccl-inspector", "`nccl-inspector`"),
    ("XGBoost", "xgboost", "`xgboost`"),
    ("LightGBM", "lightgbm", "`lightgbm`"),
    ("CatBoost", "catboost", "`catboost`"),
    ("scikit-learn", "scikit-learn", "`scikit-learn`"),
    ("Stable-Baselines3", "stable-baselines3", "`stable-baselines3`"),
    ("CLU", "clu", "`clu`"),
    (
        "KempnerForge",
        "kempnerforge",
        "`kempnerforge`, `tensorboard`, `wandb`",
    ),
    ("MaxText", "maxtext", "`maxtext`, `tensorboard`, `wandb`"),
    ("Megatron-LM", "megatron-lm", "`megatron`"),
    ("Surogate", "surogate", "`surogate`, `wandb`"),
    ("TorchSpec", "torchspec", "`torchspec`, `tensorboard`, `wandb`"),
    ("torchtitan", "torchtitan", "`torchtitan`, `tensorboard`, `wandb`"),
    ("Tunix", "tunix", "`tunix`, `tensorboard`, `wandb`"),
];

#[test]
fn every_trainer_sample_is_detected_and_its_values_match_the_log() {
    let problems: Vec<String> = samples(SAMPLES).iter().flat_map(problems).collect();
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
    for (series, expected) in &expected.series {
        let found = imported.series(series);
        if !are_same(&found, expected) {
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
        .filter(|name| name != "README.md")
        .collect();
    let expected = samples(SAMPLES);
    let expected: BTreeSet<String> = expected.iter().map(|sample| sample.file.to_owned()).collect();
    assert_eq!(found, expected);
}

#[test]
fn trainers_page_is_up_to_date_with_the_sample_coverage() {
    is_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/TRAINERS.md"), &page());
}

#[test]
fn every_trainer_key_is_mapped_consistently_with_the_samples() {
    let mut problems = Vec::new();
    for (trainer, folder, formats) in TRAINERS {
        let mappings = mappings(formats);
        let keys = keys::read(folder);
        for key in &keys {
            let outcome = key.outcome(&mappings);
            let is_kept = !matches!(outcome, None | Some(Outcome::LeftOut | Outcome::Step));
            if key.is_left_out && is_kept || !key.is_left_out && outcome == Some(Outcome::LeftOut) {
                problems.push(format!("{trainer}: {key:?} becomes {outcome:?}"));
            }
            if !key.has_known_field(&mappings) {
                problems.push(format!("{trainer}: {key:?} has a field that no line has"));
            }
        }
        let customs = custom_names(folder);
        let custom = Counts::new(&keys, &mappings).custom;
        if has_samples(folder) && customs.len() != custom {
            problems.push(format!(
                "{trainer}: {custom} keys have no metric, samples have {customs:?}"
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Trainers with scores such as AUC and counters of their own, for which the registry has no metrics.
const WITH_SCORES: [&str; 5] = [
    "XGBoost",
    "LightGBM",
    "CatBoost",
    "scikit-learn",
    "Stable-Baselines3",
];

#[test]
fn at_least_ninety_percent_of_each_trainers_keys_have_a_metric() {
    let trainers = TRAINERS
        .iter()
        .filter(|(trainer, ..)| !WITH_SCORES.contains(trainer));
    for (trainer, folder, formats) in trainers {
        let counts = Counts::new(&keys::read(folder), &mappings(formats));
        assert!(counts.share() >= 90, "{trainer}: {} %", counts.share());
    }
}

#[test]
fn nv_one_logger_configuration_becomes_run_options() {
    let imported = Imported::by("nv-one-logger", "trainers/nv-one-logger/onelogger.log");
    let options: Vec<String> = imported.events.iter().filter_map(option).collect();
    for expected in [
        "perf_tag=demo",
        "log_every_n_train_iterations=10",
        "micro_batch_size=2",
        "seq_length=2048",
        "train_samples_target=3200",
    ] {
        assert!(
            options.iter().any(|found| found == expected),
            "{expected}: {options:?}"
        );
    }
}

/// Returns `name=value` of an event with an option of the run.
fn option(event: &serde_json::Value) -> Option<String> {
    let attributes = attributes(event);
    let [name, value] = ["run.option.name", "run.option.value"].map(|key| attributes.get(key));
    Some(format!("{}={}", name?, value?))
}

/// The keys of a trainer, counted by their outcome.
#[derive(Default)]
struct Counts {
    metrics: usize,
    options: usize,
    custom: usize,
    left_out: usize,
}

impl Counts {
    fn new(keys: &[keys::Key], mappings: &[&str]) -> Self {
        let mut counts = Self::default();
        for key in keys {
            let count = match key.outcome(mappings) {
                _ if key.is_left_out => &mut counts.left_out,
                Some(Outcome::Metric | Outcome::Step) => &mut counts.metrics,
                Some(Outcome::Option) => &mut counts.options,
                Some(Outcome::LeftOut) => &mut counts.left_out,
                Some(Outcome::Custom) | None => &mut counts.custom,
            };
            *count += 1;
        }
        counts
    }

    /// Returns the percentage of metrics among the measurements.
    fn share(&self) -> usize {
        100 * self.metrics / (self.metrics + self.custom)
    }

    fn all(&self) -> usize {
        self.metrics + self.options + self.custom + self.left_out
    }
}

/// Returns the mappings of a row: the formats that are named like one.
fn mappings(formats: &'static str) -> Vec<&'static str> {
    let names = formats.split('`').skip(1).step_by(2);
    names
        .filter(|name| pulsetrain_mapping::trainers().any(|trainer| trainer.name() == *name))
        .collect()
}

fn has_samples(folder: &str) -> bool {
    samples(SAMPLES).iter().any(|sample| {
        let rest = sample.file.strip_prefix(folder);
        rest.is_some_and(|rest| rest.starts_with('/'))
    })
}

/// Returns a page with the number of keys of each trainer that become metrics of the registry.
fn page() -> String {
    let mut page = format!(
        "# Trainers that are read without configuration\n\n\
         Written by `{WRITE_GOLDEN}`. A trainer is one file in\n\
         [`mappings/`](../mapping/mappings), in the grammar of [MAPPING.md](../mapping/MAPPING.md); [FORMATS.md](FORMATS.md) lists the metric of\n\
         each key.\n\n\
         The keys are the numbers that the trainer's own code can log: `tests/corpus/trainers/*/keys.txt` lists them with the source. Each is\n\
         resolved by the mapping. Options are values of the configuration. Numbers that repeat another one, or are not measurements, are left\n\
         out. `train.custom` keeps the others. The share is the metrics divided by the sum of metrics and `train.custom`.\n\n\
         | trainer | format | keys | metrics of the registry | options | `train.custom` | left out | share |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (trainer, folder, formats) in TRAINERS {
        let counts = Counts::new(&keys::read(folder), &mappings(formats));
        writeln!(
            page,
            "| {trainer} | {formats} | {} | {} | {} | {} | {} | {} % |",
            counts.all(),
            counts.metrics,
            counts.options,
            counts.custom,
            counts.left_out,
            counts.share()
        )
        .expect("invariant: a String takes all");
    }
    page
}

/// Returns the names under `train.custom` in the samples of a folder.
fn custom_names(folder: &str) -> BTreeSet<String> {
    let names = all_samples();
    let samples = names.iter().filter(|name| {
        name.strip_prefix(FOLDER)
            .and_then(|name| name.strip_prefix(folder))
            .is_some_and(|rest| rest.starts_with('/'))
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
