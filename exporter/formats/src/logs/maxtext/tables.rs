//! Which of MaxText's numbers is which metric.

use pulsetrain_mapping::RecordTable;

/// The fields of a line with "completed step:".
pub(super) static STEP: RecordTable = RecordTable::new("maxtext", "step");
