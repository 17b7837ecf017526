//! The progress bar of long operations: on a terminal only, and only if the size of the inputs is known.

use std::{fs, io::IsTerminal, path::Path};

use indicatif::{ProgressBar, ProgressStyle};

/// The minimum input size for a bar: smaller inputs are finished too soon.
const LONG_BYTES: u64 = 16 << 20;

/// Returns a bar for inputs of these sizes, or `None` if it would not be visible.
pub(crate) fn for_sizes(sizes: impl Iterator<Item = Option<u64>>, quiet: bool) -> Option<ProgressBar> {
    let bytes = sizes.sum::<Option<u64>>()?;
    let is_shown = !quiet && bytes >= LONG_BYTES && std::io::stderr().is_terminal();
    is_shown.then(|| ProgressBar::new(bytes).with_style(style()))
}

/// Returns the size of a regular file, or `None` for other files.
pub(crate) fn size(path: &Path) -> Option<u64> {
    let file = fs::metadata(path).ok()?;
    file.is_file().then_some(file.len())
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
