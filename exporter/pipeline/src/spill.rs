//! Temporary files for data that exceeds the memory budget: bytes that are appended and read back ([`SpillFile`]), and
//! records that are sorted by their keys ([`Sorter`]).
//!
//! The files have no name, so nothing is left of them however the program ends.

mod file;
mod sorter;

pub use file::{Extent, ExtentReader, MemoryBudget, SpillFile};
pub use sorter::{Key, Sorted, Sorter};
