//! The way into the pipeline: a past that waits for every sink, and a present that waits only for a while.

use std::time::Duration;

use pulsetrain_pipeline::{
    Batch, Door, Reservation, ReserveError, Stop,
    clock::{self, Instant},
};

/// How long a job that runs in real time waits for room at a sink: long enough for what is left of the past.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends batches.
pub(crate) struct Outlet {
    door: Door,
    /// Whether a required sink was waited for in vain, and has had no room since.
    is_lagging: bool,
}

impl Outlet {
    pub(crate) fn new(door: Door) -> Self {
        Self {
            door,
            is_lagging: false,
        }
    }

    /// Sends batches; returns whether the pipeline takes more.
    pub(crate) fn send(&mut self, batches: Vec<Batch>, is_live: bool, stop: &Stop) -> bool {
        if is_live {
            self.send_live(batches, stop)
        } else {
            batches
                .into_iter()
                .all(|batch| self.door.blocking_send(batch).is_ok())
        }
    }

    fn send_live(&mut self, batches: Vec<Batch>, stop: &Stop) -> bool {
        let deadline = clock::later(clock::now(), PATIENCE);
        let patience = if self.is_lagging { Duration::ZERO } else { PATIENCE };
        self.door.blocking_pace(&batches, patience);
        let reserved = self.reserve(&batches, deadline, stop);
        self.is_lagging = matches!(reserved, Err(ReserveError::Full));
        let mut reserved = reserved.ok();
        batches.into_iter().all(|batch| {
            let sent = match &mut reserved {
                Some(reserved) => self.door.send_reserved(batch, reserved),
                None => self.door.offer(batch),
            };
            sent.is_ok()
        })
    }

    fn reserve(
        &self,
        batches: &[Batch],
        deadline: Instant,
        stop: &Stop,
    ) -> Result<Reservation, ReserveError> {
        match self.door.try_reserve(batches) {
            Err(ReserveError::Full) if !self.is_lagging => {
                let gives_up = || stop.is_raised() || clock::now() >= deadline;
                self.door.blocking_reserve(batches, gives_up)
            }
            reserved => reserved,
        }
    }
}
