//! The mappings of known trainers: one file each in `mappings/`.

use std::sync::{Arc, LazyLock};

use crate::{Mapping, MappingFile};

/// A trainer whose mapping is part of the program.
#[derive(Debug)]
pub struct Trainer {
    name: &'static str,
    mapping: LazyLock<Arc<Mapping>>,
    /// The reason that is shown for a file in which a signature of the trainer's tags was found.
    sign: LazyLock<String>,
}

/// Lists `NAME: "mappings/NAME.yaml"` of every trainer.
macro_rules! trainers {
    ($static:ident: $($name:literal),* $(,)?) => {
        static $static: [Trainer; [$($name),*].len()] = [$(Trainer {
            name: $name,
            mapping: LazyLock::new(|| build($name, include_str!(concat!("../mappings/", $name, ".yaml")))),
            sign: LazyLock::new(|| sign($name)),
        }),*];
    };
}

// Trainers whose tags in TensorBoard and wandb files are known, in the order in which signatures are looked up.
trainers![
    WITH_TAGS: "kempnerforge",
    "maxtext",
    "torchspec",
    "tunix",
    "hf-trainer",
    "torchtitan",
    "surogate",
];

trainers![
    OTHERS: "megatron",
    "verl",
    "nanogpt",
    "nanochat",
    "deepspeed",
    "llamafactory",
    "lightning",
    "torchtune",
    "openrlhf",
    "litgpt",
    "composer",
    "llmc",
    "keras",
    "nccl-inspector",
    "easyr1",
    "nemo",
    "nemo-lens",
    "nv-one-logger",
    "xgboost",
    "lightgbm",
    "catboost",
    "scikit-learn",
    "stable-baselines3",
    "clu",
    "generic",
    "wandb-system",
];

fn build(name: &str, yaml: &str) -> Arc<Mapping> {
    let file =
        MappingFile::parse(yaml).unwrap_or_else(|error| panic!("invariant: mappings/{name}.yaml: {error}"));
    let mut mapping = file
        .build()
        .unwrap_or_else(|faults| panic!("invariant: mappings/{name}.yaml: {faults:?}"));
    for table in mapping.records.values_mut() {
        table.owner = name.replace('-', "_");
    }
    Arc::new(mapping)
}

fn sign(name: &'static str) -> String {
    let mapping = trainer(name).mapping();
    let examples: Vec<&str> = mapping.scalars().signatures().take(2).collect();
    format!(
        "tags that only {} writes ({} ...)",
        mapping.title(),
        examples.join(", ")
    )
}

impl Trainer {
    /// Returns the name of its file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its mapping.
    ///
    /// # Panics
    /// Never: a test builds every mapping.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Describes the tags that identified the trainer.
    pub fn sign(&'static self) -> &'static str {
        &self.sign
    }
}

/// Returns the trainer of a file in `mappings/`.
///
/// # Panics
/// Panics for a name that is not listed; a test covers all names that are used.
pub fn trainer(name: &str) -> &'static Trainer {
    let found = trainers().find(|trainer| trainer.name == name);
    found.unwrap_or_else(|| panic!("invariant: mappings/{name}.yaml is listed"))
}

/// Returns the trainer that has a tag as a signature, if any.
pub(crate) fn trainer_of_signature(tag: &str) -> Option<&'static Trainer> {
    trainers_with_tags().find(|trainer| trainer.mapping().scalars().is_signature(tag))
}

/// Returns the trainers whose tags are known, in the order in which signatures are looked up.
pub(crate) fn trainers_with_tags() -> impl Iterator<Item = &'static Trainer> {
    WITH_TAGS.iter()
}

/// Returns every trainer.
pub fn trainers() -> impl Iterator<Item = &'static Trainer> {
    WITH_TAGS.iter().chain(&OTHERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mapping_can_be_used() {
        for trainer in trainers() {
            trainer.mapping();
        }
    }
}
