//! Our names for what Tunix sends under its own (`tunix_otel`); everything else of a message goes on as it came.
//!
//! A thread of its own does it, because what sums and steps have come to goes from one message to the next. Whose messages
//! they are, the resource says: the same resource is the same run.

mod runs;
mod split;

use std::io;

use memchr::memmem;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, ThrottledLog};
use tokio::sync::{mpsc, oneshot};

use self::runs::Runs;
use super::refusal::Refusal;
use crate::tunix_otel::MODE;

/// So many messages wait for the thread; whoever comes then waits in front of it.
const WAITING: usize = 8;

/// The way to the thread; it ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Renamer {
    jobs: mpsc::Sender<Job>,
}

/// A message, and where what became of it is waited for.
#[derive(Debug)]
struct Job {
    batch: Batch,
    done: oneshot::Sender<Vec<Batch>>,
}

impl Renamer {
    /// Starts the thread.
    ///
    /// # Errors
    /// A system that has no thread for us.
    pub(super) fn start(notices: ThrottledLog) -> io::Result<Self> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING);
        let work = move || {
            let mut runs = Runs::new(notices);
            while let Some(job) = waiting.blocking_recv() {
                // Who does not wait any more gets the message again.
                let _ = job.done.send(runs.renamed(&job.batch));
            }
        };
        std::thread::Builder::new()
            .name("otlp-names".to_owned())
            .spawn(work)?;
        Ok(Self { jobs })
    }

    /// The batch, or what becomes of one that holds metrics of Tunix.
    pub(super) async fn renamed(&self, batch: Batch) -> Result<Vec<Batch>, Refusal> {
        if !concerns_us(&batch) {
            return Ok(vec![batch]);
        }
        let (done, answer) = oneshot::channel();
        let sent = self.jobs.send(Job { batch, done }).await;
        sent.map_err(|_| Refusal::Ending)?;
        answer.await.map_err(|_| Refusal::Ending)
    }
}

/// Whether the attribute that all of Tunix's points have is in it: most messages are not looked at any further.
fn concerns_us(batch: &Batch) -> bool {
    batch.signal() == Signal::Metrics && memmem::find(batch.bytes(), MODE.as_bytes()).is_some()
}
