//! Parses the line with the passes of a DFlash trainer (`torchspec/training/dflash_trainer.py`): `COMPUTE_BREAKDOWN step=5:
//! forward=12.3ms backward=20.1ms`.
//!
//! The trainer counts steps from zero, the loop counts them from one. Both print only some steps, so most steps have one of the
//! two lines.

use crate::logs::delimited::Delimiters;
use pulsetrain_mapping::Field;

/// The reason of a duplicate: another line already has the passes of the step.
pub(super) const DUPLICATE: &str = "passes_told_by_another_line";

const VALUES: Delimiters = Delimiters { pair: " ", key: b"=" };

/// Returns the step, counted from one, and its times in milliseconds.
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
