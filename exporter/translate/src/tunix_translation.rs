//! Translates the OTLP metrics of Tunix (`enable_opentelemetry`).
//!
//! `split` separates the points of Tunix from the rest of a message, which keeps its bytes. `runs` records the points of each
//! resource under the names of the registry, with the same mapping as the tags of Tunix's TensorBoard files.

mod runs;
mod split;

use std::{
    io,
    sync::mpsc::{self, Receiver, SyncSender},
};

use memchr::memmem;
use pulsetrain_mapping::tunix_otel::MODE;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Stage, ThrottledLog, clock::Instant};

use self::runs::Runs;

/// A stage that translates the metrics of Tunix. All other telemetry passes unchanged.
///
/// Sums and steps continue from one message to the next, so the stage holds the state of all runs. A [`Recorder`] is not
/// `Send`, so the state is owned by a separate thread, which ends with the stage.
///
/// [`Recorder`]: pulsetrain_record::Recorder
#[derive(Debug)]
pub struct TunixTranslation {
    batches: SyncSender<Batch>,
    translated: Receiver<Vec<Batch>>,
}

impl TunixTranslation {
    /// Starts the thread. `notices` receives reports of lost points.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(notices: ThrottledLog) -> io::Result<Self> {
        let (batches, waiting) = mpsc::sync_channel::<Batch>(1);
        let (done, translated) = mpsc::sync_channel(1);
        let work = move || {
            let mut runs = Runs::new(notices);
            for batch in waiting {
                if done.send(runs.translate(&batch)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("tunix-translation".to_owned())
            .spawn(work)?;
        Ok(Self { batches, translated })
    }

    /// Returns the translation of a batch, or `None` if the thread has panicked.
    fn translated(&self, batch: Batch) -> Option<Vec<Batch>> {
        self.batches.send(batch).ok()?;
        self.translated.recv().ok()
    }
}

impl Stage for TunixTranslation {
    fn pass(&mut self, batch: Batch, _now: Instant, out: &mut Vec<Batch>) {
        if !contains_tunix_points(&batch) {
            return out.push(batch);
        }
        match self.translated(batch.clone()) {
            Some(translated) => out.extend(translated),
            None => out.push(batch),
        }
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn release(&mut self, _now: Instant, _out: &mut Vec<Batch>) {}

    fn finish(&mut self, _out: &mut Vec<Batch>) {}
}

/// Returns whether a batch contains the attribute that every point of Tunix has. Most messages are excluded by this check.
fn contains_tunix_points(batch: &Batch) -> bool {
    batch.signal() == Signal::Metrics && memmem::find(batch.bytes(), MODE.as_bytes()).is_some()
}
