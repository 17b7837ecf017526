//! The progress display of a long import.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use indicatif::ProgressBar;
use pulsetrain_tail::LogInput;

use crate::progress_bar;

/// A progress bar, which is hidden if there is no terminal, and its updater.
pub(super) struct ImportProgress {
    bar: ProgressBar,
    watched: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
    ticker: Option<tokio::task::JoinHandle<()>>,
}

impl ImportProgress {
    /// Creates a bar for these inputs.
    pub(super) fn for_inputs(inputs: &[LogInput], quiet: bool) -> Self {
        let bar = progress_bar::for_sizes(inputs.iter().map(size), quiet);
        let watched = Arc::default();
        let ticker = bar
            .clone()
            .map(|bar| tokio::spawn(tick(bar, Arc::clone(&watched))));
        Self {
            bar: bar.unwrap_or_else(ProgressBar::hidden),
            watched,
            ticker,
        }
    }

    /// Adds the bytes read of another input to the bar.
    pub(super) fn watch(&self, bytes_read: Arc<AtomicU64>) {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(bytes_read);
    }

    /// Removes the bar.
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
        LogInput::Path(path) => progress_bar::size(path),
        LogInput::Stdin => None,
    }
}
