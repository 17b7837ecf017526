//! What a number under a tag means: one table a training system, and the signs by which a system is known.
//!
//! TensorBoard event files and wandb files hold the same thing, numbers under tags at steps, and a trainer that writes both
//! uses the same tags. [`Scalars`] takes them in, whatever file they come from.

mod distribution;
mod hf_trainer;
mod kempnerforge;
mod maxtext;
mod meaning;
mod pattern;
mod row;
mod scalars;
mod shared;
mod surogate;
mod system;
mod torchspec;
mod torchtitan;
mod tunix;

pub(crate) use distribution::Distribution;
pub(crate) use maxtext::SYSTEM as MAXTEXT;
pub(crate) use row::{Capture, TagRow, keep, tag};
pub(crate) use scalars::{At, Scalars, TagPlace, record_option};
pub(crate) use system::{System, system_of};
pub(crate) use torchspec::Reading as TorchSpecReading;
pub(crate) use tunix::SYSTEM as TUNIX;

use crate::logs::Covered;

/// The tables of all systems as lines of the coverage table.
pub(crate) fn coverage() -> Vec<Covered> {
    let systems = system::SYSTEMS.iter().flat_map(|system| system.rows);
    systems.chain(shared::ROWS).map(TagRow::covered).collect()
}

/// The table of one system as lines of the coverage table.
pub(crate) fn coverage_of(system: &System) -> Vec<Covered> {
    system.rows.iter().map(TagRow::covered).collect()
}

#[cfg(test)]
mod tests;
