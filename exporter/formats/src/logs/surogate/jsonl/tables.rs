//! The mapping tables of the JSON lines.

use pulsetrain_mapping::RecordTable;

/// The rows of steps and evaluations.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "jsonl");
