//! Writes on the terminal, on a thread of its own: who draws never waits, and what finds no room is left out and counted.

use std::{
    io::Write,
    sync::mpsc::{self, Receiver, SyncSender, TrySendError},
    thread,
    time::Duration,
};

/// How many drawings wait for a terminal that takes none at the moment.
const MAX_WAITING: usize = 64;

/// How long a terminal has at the end for what waits.
const END: Duration = Duration::from_millis(500);

/// What writes.
pub(super) struct Pen {
    drawings: SyncSender<Vec<u8>>,
    ended: Receiver<()>,
}

/// What became of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawOutcome {
    /// It is written, or will be.
    Soon,
    /// There was no room for it.
    Never,
    /// The terminal is gone.
    Gone,
}

impl Pen {
    /// Writes to `out` from now on, until that fails.
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

    /// Has a drawing written.
    pub(super) fn write(&self, drawing: Vec<u8>) -> DrawOutcome {
        match self.drawings.try_send(drawing) {
            Ok(()) => DrawOutcome::Soon,
            Err(TrySendError::Full(_)) => DrawOutcome::Never,
            Err(TrySendError::Disconnected(_)) => DrawOutcome::Gone,
        }
    }

    /// Waits a moment until everything is written.
    pub(super) fn finish(self) {
        let Self { drawings, ended } = self;
        drop(drawings);
        let _ = ended.recv_timeout(END);
    }
}
