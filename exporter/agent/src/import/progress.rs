//! The progress bar of long imports: on a terminal only, and only where the size of the input is known.

use std::{
    io::IsTerminal,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use pulsetrain_sources::logs::LogInput;

/// Imports below this size are over before anyone looks.
const LONG_BYTES: u64 = 16 << 20;

/// What a user sees of an import that goes on for a while.
pub(super) struct Progress {
    bar: ProgressBar,
    watched: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
    ticker: Option<tokio::task::JoinHandle<()>>,
}

impl Progress {
    /// A bar for these inputs; none where nobody would see it.
    pub(super) fn of(inputs: &[LogInput], quiet: bool) -> Self {
        let bytes = inputs.iter().map(size).sum::<Option<u64>>().unwrap_or_default();
        let watched = Arc::default();
        if quiet || bytes < LONG_BYTES || !std::io::stderr().is_terminal() {
            return Self {
                bar: ProgressBar::hidden(),
                watched,
                ticker: None,
            };
        }
        let bar = ProgressBar::new(bytes).with_style(style());
        let ticker = tokio::spawn(tick(bar.clone(), Arc::clone(&watched)));
        Self {
            bar,
            watched,
            ticker: Some(ticker),
        }
    }

    /// Takes the bytes read of one more input into the bar.
    pub(super) fn watch(&self, bytes_read: Arc<AtomicU64>) {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(bytes_read);
    }

    /// Takes the bar away.
    pub(super) fn finish(self) {
        self.ticker.iter().for_each(tokio::task::JoinHandle::abort);
        self.bar.finish_and_clear();
    }
}

async fn tick(bar: ProgressBar, watched: Arc<Mutex<Vec<Arc<AtomicU64>>>>) {
    loop {
        let read = |bytes: &Arc<AtomicU64>| bytes.load(Ordering::Relaxed);
        bar.set_position(
            watched
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
                .map(read)
                .sum(),
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn size(input: &LogInput) -> Option<u64> {
    match input {
        LogInput::Path(path) => std::fs::metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file)
            .map(|file| file.len()),
        LogInput::Stdin => None,
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        .expect("invariant: the template is a constant that a test draws")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_bar_can_be_drawn() {
        super::style();
    }
}
