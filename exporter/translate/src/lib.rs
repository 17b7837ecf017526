//! A stage that gives the registry's names to OTLP metrics that trainers send under their own names.
//!
//! Tunix is the one such trainer ([`TunixTranslation`]): `split` separates its points from the rest of a message, which stays as it
//! came to the byte, and `runs` records the points of each resource under our names.

mod rest;
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

/// Translates the metrics of Tunix; all other telemetry passes unchanged.
///
/// Sums and steps continue from one message to the next, so one thread holds the state of all runs. The thread ends with the stage.
#[derive(Debug)]
pub struct TunixTranslation {
    batches: SyncSender<Batch>,
    translated: Receiver<Vec<Batch>>,
}

impl TunixTranslation {
    /// Starts the thread. `notices` receives reports of points that are lost.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(notices: ThrottledLog) -> io::Result<Self> {
        let (batches, waiting) = mpsc::sync_channel::<Batch>(1);
        let (done, translated) = mpsc::sync_channel(1);
        let work = move || {
            let mut runs = Runs::new(notices);
            for batch in waiting {
                if done.send(runs.renamed(&batch)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("otlp-names".to_owned())
            .spawn(work)?;
        Ok(Self { batches, translated })
    }

    /// Returns what the thread makes of a batch, or `None` if the thread has panicked.
    fn translated(&self, batch: Batch) -> Option<Vec<Batch>> {
        self.batches.send(batch).ok()?;
        self.translated.recv().ok()
    }
}

impl Stage for TunixTranslation {
    fn pass(&mut self, batch: Batch, _now: Instant, out: &mut Vec<Batch>) {
        if !holds_tunix(&batch) {
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

/// Whether a batch contains the attribute that every point of Tunix has. Most messages need no further look.
fn holds_tunix(batch: &Batch) -> bool {
    batch.signal() == Signal::Metrics && memmem::find(batch.bytes(), MODE.as_bytes()).is_some()
}
