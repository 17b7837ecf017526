//! Keeps inputs from being overwritten.

use std::path::Path;

use crate::failure::Failure;

/// Rejects an output that is also an input: it would be truncated before it is read.
pub(crate) fn refuse_input<'a>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    let Ok(output) = output.canonicalize() else {
        return Ok(());
    };
    let is_output = |input: &&Path| input.canonicalize().is_ok_and(|input| input == output);
    match inputs.into_iter().find(is_output) {
        Some(input) => Err(Failure::usage(format!(
            "{} is both input and output; name another output",
            input.display()
        ))),
        None => Ok(()),
    }
}
