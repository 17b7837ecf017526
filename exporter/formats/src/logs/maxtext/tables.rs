//! Which of MaxText's numbers is which metric.

use pulsetrain_mapping::RecordTable;

/// Of a line with "completed step:".
pub(super) static STEP: RecordTable = RecordTable::new("maxtext", "step");
