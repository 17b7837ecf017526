//! The progress display of a long conversion.

use std::{io::Read, path::PathBuf};

use indicatif::ProgressBar;

use crate::progress_bar;

/// A progress bar, which is hidden if there is no terminal.
pub(crate) struct ConvertProgress(ProgressBar);

impl ConvertProgress {
    /// Creates a bar for these inputs.
    pub(crate) fn for_inputs(inputs: &[PathBuf], quiet: bool) -> Self {
        let sizes = inputs.iter().map(|path| progress_bar::size(path));
        Self(progress_bar::for_sizes(sizes, quiet).unwrap_or_else(ProgressBar::hidden))
    }

    /// Counts the bytes that are read from an input.
    pub(super) fn watch<R: Read>(&self, input: R) -> impl Read + use<R> {
        self.0.wrap_read(input)
    }

    /// Shows that all inputs are read and the output is being written.
    pub(super) fn writing(&self) {
        self.0.set_message("writing");
        self.0.tick();
    }

    /// Removes the bar.
    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}
