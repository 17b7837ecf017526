//! The context that the followed files of a follower share: pipeline, checkpoints, events, options.

use std::{collections::HashSet, fs::File, io, path::Path, sync::Arc, time::Duration};

use pulsetrain_otlp::write::Encoded;
use pulsetrain_pipeline::{
    Batch, Ingress, Reservation, ReserveError,
    clock::{self, Instant},
};
use pulsetrain_record::Run;

use super::{
    AtStop, Checkpointer, PollReport, TailConfig, TailEvent, checkpoint_store::FileCheckpoint,
    checkpointer::CheckpointUpdate, identity::Inode, poll_report::PollMeter, run_reader::RunReader,
    wakeup::Wakeup,
};
use crate::{ImportReport, RunOptions, TailError};

/// The most flushes in flight. Beyond it, records wait for the next flush, so that batches become larger instead of more.
const FLUSHES_IN_FLIGHT: usize = 64;

/// The most bytes in flight. Beyond it, a backlog stays in its file. A quarter of the default size of a queue.
const BYTES_IN_FLIGHT: usize = 16 << 20;

/// The longest wait for sinks that are not required, and for all sinks while the follower shuts down.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The interval at which a follower that waits for room checks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// The least interval between two writes of the checkpoint file.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// The context of all files of a follower.
pub(super) struct TailContext {
    checkpointer: Checkpointer,
    ingress: Ingress,
    wakeup: Arc<Wakeup>,
    on_event: Box<dyn FnMut(TailEvent) + Send>,
    meter: PollMeter,
    options: RunOptions,
    at_stop: AtStop,
    tracked: HashSet<Inode>,
    is_shutting_down: bool,
    is_closed: bool,
    next_save: Instant,
}

impl TailContext {
    pub(super) fn new(
        config: &TailConfig,
        checkpointer: Checkpointer,
        ingress: Ingress,
        wakeup: Arc<Wakeup>,
        on_event: Box<dyn FnMut(TailEvent) + Send>,
        on_poll: Box<dyn FnMut(PollReport) + Send>,
    ) -> Self {
        Self {
            checkpointer,
            ingress,
            wakeup,
            on_event,
            meter: PollMeter::new(on_poll),
            options: config.options.clone(),
            at_stop: config.at_stop,
            tracked: HashSet::new(),
            is_shutting_down: false,
            is_closed: false,
            next_save: clock::now(),
        }
    }

    /// Waits until every required sink has room, then sends batches. The update takes effect when the batches are acknowledged.
    /// Meanwhile nothing more is read: the log is the queue.
    pub(super) fn send(&mut self, batches: Vec<Encoded>, update: CheckpointUpdate) {
        let batches: Vec<Batch> = batches
            .into_iter()
            .map(|encoded| Batch::new(encoded.signal, encoded.items, encoded.bytes))
            .collect();
        let reserved = self.reserve(&batches);
        let sent = self.checkpointer.send(&self.ingress, batches, reserved, update);
        self.is_closed |= sent.is_err();
    }

    /// Returns whether the sinks keep up, so that small batches do not fill their queues.
    pub(super) fn has_room(&self) -> bool {
        self.is_shutting_down || self.checkpointer.in_flight().1 < FLUSHES_IN_FLIGHT
    }

    /// Returns the checkpoint of a path.
    pub(super) fn checkpoint_of(&self, path: &Path) -> Option<FileCheckpoint> {
        self.checkpointer.checkpoint_of(path)
    }

    /// Returns the checkpoint of the newest file of a run.
    pub(super) fn newest_of_run(&self, format: &str, run: &Run) -> Option<FileCheckpoint> {
        self.checkpointer.newest_of_run(format, &run.id, run.attempt)
    }

    pub(super) fn is_finished(&self, file: &File) -> io::Result<bool> {
        self.checkpointer.is_finished(file)
    }

    /// Returns whether the file at a path was read to its end before. Returns `false` if it cannot be opened.
    pub(super) fn is_finished_at(&self, path: &Path) -> bool {
        File::open(path).is_ok_and(|file| self.is_finished(&file).unwrap_or(false))
    }

    /// Returns whether a file is being read, under any name.
    pub(super) fn is_tracked(&self, inode: Inode) -> bool {
        self.tracked.contains(&inode)
    }

    pub(super) fn track(&mut self, inode: Inode) {
        self.tracked.insert(inode);
    }

    pub(super) fn untrack(&mut self, inode: Inode) {
        self.tracked.remove(&inode);
    }

    pub(super) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the collector of poll reports.
    pub(super) fn meter(&mut self) -> &mut PollMeter {
        &mut self.meter
    }

    pub(super) fn begin_shutdown(&mut self) {
        self.is_shutting_down = true;
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }

    pub(super) fn finishes_at_stop(&self) -> bool {
        self.at_stop == AtStop::Finish
    }

    /// Returns whether the pipeline is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reports a path in which the user's pattern finds no rank.
    pub(super) fn check_rank(&mut self, path: &str) {
        let missed = self.options.rank.missed(path).map(|pattern| TailError::NoRank {
            name: path.to_owned(),
            pattern: pattern.to_owned(),
        });
        missed.into_iter().for_each(|error| self.report_problem(error));
    }

    /// Claims the ranks that a reader recorded since the last call. Reports a rank that another file has claimed.
    pub(super) fn claim(&mut self, reader: &mut RunReader) {
        for shared in reader.claim(&self.options.claims) {
            self.report_problem(shared);
        }
    }

    /// Releases the claims of a reader.
    pub(super) fn release_claims(&self, reader: &RunReader) {
        self.options.claims.release(&reader.name());
    }

    pub(super) fn report_waiting(&mut self, path: &Path) {
        (self.on_event)(TailEvent::Waiting {
            path: path.to_owned(),
        });
    }

    pub(super) fn report_opened(&mut self, reader: &RunReader, offset: u64) {
        (self.on_event)(reader.opened_event(offset));
    }

    pub(super) fn report_ended(&mut self, report: ImportReport) {
        (self.on_event)(TailEvent::Ended(Box::new(report)));
    }

    pub(super) fn report_problem(&mut self, error: TailError) {
        (self.on_event)(TailEvent::Problem(error));
    }

    /// Writes the checkpoint file, unless it was written less than [`SAVE_INTERVAL`] ago.
    pub(super) fn save(&mut self) {
        if clock::now() >= self.next_save {
            self.save_now();
        }
    }

    /// Writes the checkpoint file. A persistent failure is reported once.
    pub(super) fn save_now(&mut self) {
        self.next_save = clock::later(clock::now(), SAVE_INTERVAL);
        if let Err(error) = self.checkpointer.save_reporting_once() {
            self.report_problem(error);
        }
    }

    /// Reserves room at the required sinks. If a follower that shuts down gets no room, its batches are sent
    /// nevertheless, beyond the limits of the queues, and nothing more is read.
    fn reserve(&mut self, batches: &[Batch]) -> Reservation {
        if batches.is_empty() || self.is_closed {
            return Reservation::default();
        }
        self.ingress.blocking_pace(batches, MAX_WAIT);
        let (is_shutting_down, wakeup) = (self.is_shutting_down, &self.wakeup);
        let mut deadline = None;
        let mut gives_up = || {
            let now = clock::now();
            let until = || clock::later(now, MAX_WAIT);
            (is_shutting_down || wakeup.is_stopped()) && now >= *deadline.get_or_insert_with(until)
        };
        let mut has_given_up = false;
        while !has_given_up && self.checkpointer.in_flight().0 > BYTES_IN_FLIGHT {
            std::thread::sleep(STOP_CHECK);
            has_given_up = gives_up();
        }
        let reserved = match has_given_up {
            true => Err(ReserveError::Full),
            false => self.ingress.blocking_reserve(batches, gives_up),
        };
        self.is_closed |= reserved.is_err();
        reserved.unwrap_or_default()
    }
}
