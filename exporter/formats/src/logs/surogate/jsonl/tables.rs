//! Which key of the JSON lines is which metric.

use pulsetrain_mapping::RecordTable;

/// Of steps and evaluations.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "jsonl");
