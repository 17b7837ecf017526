//! Scalars, texts and histograms with tags: the content of TensorBoard event files and wandb files.
//!
//! A trainer that writes both kinds of file uses the same tags. Its mapping defines them.

mod distribution;
mod scalars;
mod torchspec;

pub(crate) use distribution::Distribution;
pub(crate) use scalars::Scalars;
pub(crate) use torchspec::Reading as TorchSpecReading;

use pulsetrain_mapping::{CoverageRow, trainer, trainers};

/// Returns the coverage rows of the tags of all trainers.
pub(crate) fn coverage() -> Vec<CoverageRow> {
    let tables = trainers().map(|trainer| trainer.mapping().scalars().table());
    let rows = tables.flat_map(|table| table.coverage());
    let usual = CoverageRow::rule(
        "other tags with a key of the format `generic`",
        "the metric of that key",
        "as for numbers without a unit",
    );
    rows.chain([usual]).collect()
}

/// Returns the coverage rows of the tags of one trainer.
pub(crate) fn coverage_of(name: &str) -> Vec<CoverageRow> {
    trainer(name).mapping().scalars().table().coverage()
}
