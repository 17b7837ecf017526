//! The mapping tables of the console.

use pulsetrain_mapping::RecordTable;

/// The rows of the beginning of a step.
pub(super) static HEAD: RecordTable = RecordTable::new("surogate", "console.head");

/// The rows of a step.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "console.step");

/// The rows of an evaluation.
pub(super) static EVAL: RecordTable = RecordTable::new("surogate", "console.eval");

/// The rows of the two lines of a GPU.
pub(super) static GPU: RecordTable = RecordTable::new("surogate", "console.gpu");

/// The rows of a step of reinforcement learning.
pub(super) static GRPO: RecordTable = RecordTable::new("surogate", "console.grpo");

/// The rows of the lines before the first step.
pub(super) static HEADING: RecordTable = RecordTable::new("surogate", "console.heading");
