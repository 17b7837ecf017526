//! The progress bar of long conversions: on a terminal only, and only where the size of the inputs is known.

use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};

use indicatif::{ProgressBar, ProgressStyle};

/// Conversions below this size are over before anyone looks.
const LONG_BYTES: u64 = 16 << 20;

/// What a user sees of a conversion that goes on for a while.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// A bar for these inputs; none where nobody would see it.
    pub(super) fn of(inputs: &[PathBuf], quiet: bool) -> Self {
        let size = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            file.is_file().then_some(file.len())
        };
        let bytes: u64 = inputs.iter().map(size).sum::<Option<u64>>().unwrap_or_default();
        if quiet || bytes < LONG_BYTES || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        Self(ProgressBar::new(bytes).with_style(style()))
    }

    /// Counts what is read of an input.
    pub(super) fn watch<R: Read>(&self, input: R) -> impl Read + use<R> {
        self.0.wrap_read(input)
    }

    /// Says that everything is read and the output is being written.
    pub(super) fn writing(&self) {
        self.0.set_message("writing");
        self.0.tick();
    }

    /// Takes the bar away.
    pub(super) fn finish(self) {
        self.0.finish_and_clear();
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta} {msg}")
        .expect("invariant: the template is a constant that a test draws")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bar_can_be_drawn() {
        super::style();
    }
}
