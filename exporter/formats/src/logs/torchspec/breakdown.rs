//! The line with which a trainer of DFlash tells its passes (`torchspec/training/dflash_trainer.py`):
//! `COMPUTE_BREAKDOWN step=5: forward=12.3ms backward=20.1ms`.
//!
//! It counts steps from zero and the loop counts them from one, and both are for some steps only, so most are told by one of
//! them.

use crate::logs::delimited::Delimiters;
use pulsetrain_mapping::Field;

/// The rule by which the second of two lines that tell the passes of a step is left out.
pub(super) const TOLD: &str = "passes_told_by_another_line";

const VALUES: Delimiters = Delimiters { pair: " ", key: b"=" };

/// The step, counted as the loop does, and its times in milliseconds.
pub(super) fn parse(message: &str) -> Option<(i64, Vec<Field<'_>>)> {
    let (step, values) = message
        .strip_prefix("COMPUTE_BREAKDOWN step=")?
        .split_once(": ")?;
    let step = step.parse::<i64>().ok()?.checked_add(1)?;
    let values = VALUES.fields(values);
    Some((
        step,
        values
            .map(|value| (value.key.into(), value.value(&["ms"])))
            .collect(),
    ))
}
