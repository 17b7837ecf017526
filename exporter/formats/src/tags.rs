//! Numbers and texts under tags: what TensorBoard event files and wandb files hold.
//!
//! A trainer that writes both kinds of file uses the same tags; its mapping has what they mean.

mod distribution;
mod scalars;
mod torchspec;

pub(crate) use distribution::Distribution;
pub(crate) use scalars::Scalars;
pub(crate) use torchspec::Reading as TorchSpecReading;

use pulsetrain_mapping::{CoverageRow, shared_scalars, trainer, trainers};

/// What becomes of the tags of all trainers, for the documentation.
pub(crate) fn coverage() -> Vec<CoverageRow> {
    let tables = trainers().map(|trainer| trainer.mapping().scalars().table());
    let rows = tables.flat_map(|table| table.coverage());
    rows.chain(shared_scalars().coverage()).collect()
}

/// What becomes of the tags of one trainer, for the documentation.
pub(crate) fn coverage_of(name: &str) -> Vec<CoverageRow> {
    trainer(name).mapping().scalars().table().coverage()
}
