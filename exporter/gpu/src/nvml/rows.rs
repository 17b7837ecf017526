//! The table: every row is one query to the driver. A new gauge is one row in the file of its kind.

mod activity;
mod clocks;
mod counters;
mod errors;
mod heat;
mod instances;
mod links;
mod memory;
mod pcie;
mod power;
mod power_smoothing;
mod processes;
mod states;

pub(super) use self::power::measured;

use super::row::Row;

/// The rows of a GPU by kind. If two rows fill the same series, the first one with an answer is used.
static GPU: [&[Row]; 13] = [
    activity::ROWS,
    memory::ROWS,
    power::ROWS,
    power_smoothing::ROWS,
    heat::ROWS,
    clocks::ROWS,
    pcie::ROWS,
    links::ROWS,
    errors::ROWS,
    states::ROWS,
    counters::ROWS,
    counters::LINKS,
    processes::ROWS,
];

/// Returns the rows of a GPU.
pub(crate) fn of_gpu() -> impl Iterator<Item = &'static Row> {
    GPU.iter().flat_map(|rows| rows.iter())
}

/// Returns the rows of a MIG instance.
pub(crate) fn of_instance() -> impl Iterator<Item = &'static Row> {
    instances::ROWS.iter().chain(counters::ROWS)
}
