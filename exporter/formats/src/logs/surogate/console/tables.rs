//! Which of the console's numbers is which metric.

use pulsetrain_mapping::RecordTable;

/// Of the beginning of a step.
pub(super) static HEAD: RecordTable = RecordTable::new("surogate", "console.head");

/// Of a step.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "console.step");

/// Of an evaluation.
pub(super) static EVAL: RecordTable = RecordTable::new("surogate", "console.eval");

/// Of the two lines of a GPU.
pub(super) static GPU: RecordTable = RecordTable::new("surogate", "console.gpu");

/// Of a step of reinforcement learning.
pub(super) static GRPO: RecordTable = RecordTable::new("surogate", "console.grpo");

/// Of what is printed before the first step.
pub(super) static HEADING: RecordTable = RecordTable::new("surogate", "console.heading");
