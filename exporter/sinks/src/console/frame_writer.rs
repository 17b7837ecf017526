//! Writes to the terminal on its own thread. The caller never waits; frames that exceed the queue are dropped
//! and counted.

use std::{
    io::Write,
    sync::mpsc::{self, Receiver, SyncSender, TrySendError},
    thread,
    time::Duration,
};

/// The maximum number of frames in the queue.
const MAX_WAITING: usize = 64;

/// The maximum time to flush the queue at shutdown.
const END: Duration = Duration::from_millis(500);

/// The writer thread and its queue.
pub(super) struct FrameWriter {
    drawings: SyncSender<Vec<u8>>,
    ended: Receiver<()>,
}

/// The result of queueing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawOutcome {
    /// The frame is queued.
    Soon,
    /// The queue is full.
    Never,
    /// The terminal no longer exists.
    Gone,
}

impl FrameWriter {
    /// Starts a thread that writes to `out` until a write fails.
    pub(super) fn new(mut out: Box<dyn Write + Send>) -> Self {
        let (drawings, waiting) = mpsc::sync_channel::<Vec<u8>>(MAX_WAITING);
        let (alive, ended) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let _alive: SyncSender<()> = alive;
            for drawing in waiting {
                if out.write_all(&drawing).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        });
        Self { drawings, ended }
    }

    /// Queues a frame.
    pub(super) fn write(&self, drawing: Vec<u8>) -> DrawOutcome {
        match self.drawings.try_send(drawing) {
            Ok(()) => DrawOutcome::Soon,
            Err(TrySendError::Full(_)) => DrawOutcome::Never,
            Err(TrySendError::Disconnected(_)) => DrawOutcome::Gone,
        }
    }

    /// Flushes the queue, for at most [`END`].
    pub(super) fn finish(self) {
        let Self { drawings, ended } = self;
        drop(drawings);
        let _ = ended.recv_timeout(END);
    }
}
