//! The context that the followed files of a follower share: pipeline, checkpoints, events, options.

use std::{
    collections::HashSet,
    fs::File,
    io,
    path::Path,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

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

/// The most groups of flushes in flight. Beyond it, records wait for the next flush, so that batches become larger instead of more.
const FLUSHES_IN_FLIGHT: usize = 64;

/// The size at which a group of flushes is sent, before all files of a round are polled.
const GROUP_BYTES: usize = 1 << 20;

/// The size in bytes beyond which messages of a group are not joined. A queue has to hold at least one joined message.
pub const JOINED_BYTES: usize = 256 << 10;

/// The most bytes in flight. Beyond it, a backlog stays in its file. A quarter of the default size of a queue.
const BYTES_IN_FLIGHT: usize = 16 << 20;

/// The longest wait for sinks that are not required, and for all sinks while the follower shuts down.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The interval at which a follower that waits for room checks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// The least interval between two writes of the checkpoint file.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// Flushes of the files of one round, which are sent and acknowledged together: thousands of files with a line a second cost one
/// sync of the disk queue.
#[derive(Default)]
struct FlushGroup {
    messages: Vec<Encoded>,
    updates: Vec<CheckpointUpdate>,
}

/// The context of all files of a follower.
pub(super) struct TailContext {
    checkpointer: Checkpointer,
    ingress: Ingress,
    wakeup: Arc<Wakeup>,
    on_event: Box<dyn FnMut(TailEvent) + Send>,
    meter: PollMeter,
    group: FlushGroup,
    options: RunOptions,
    at_stop: AtStop,
    tracked: HashSet<Inode>,
    is_shutting_down: bool,
    is_closed: bool,
    next_save: Instant,
    /// The thread that writes the checkpoint file. Thousands of checkpoints take seconds, in which the logs are read on.
    saving: Option<JoinHandle<Result<(), TailError>>>,
}

impl FlushGroup {
    /// Adds a message, joined with the last one of its signal if both are small: the bytes of OTLP messages are concatenated.
    fn add(&mut self, encoded: Encoded) {
        let newest = self
            .messages
            .iter_mut()
            .rfind(|message| message.signal == encoded.signal);
        match newest.filter(|message| message.bytes.len() + encoded.bytes.len() <= JOINED_BYTES) {
            Some(message) => {
                message.items += encoded.items;
                message.bytes.extend_from_slice(&encoded.bytes);
            }
            None => self.messages.push(encoded),
        }
    }

    fn bytes(&self) -> usize {
        self.messages.iter().map(|message| message.bytes.len()).sum()
    }
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
            group: FlushGroup::default(),
            options: config.options.clone(),
            at_stop: config.at_stop,
            tracked: HashSet::new(),
            is_shutting_down: false,
            is_closed: false,
            next_save: clock::now(),
            saving: None,
        }
    }

    /// Adds batches to the group of this round, with an update that takes effect when they are acknowledged.
    pub(super) fn send(&mut self, batches: Vec<Encoded>, update: CheckpointUpdate) {
        batches.into_iter().for_each(|encoded| self.group.add(encoded));
        self.group.updates.push(update);
        if self.group.bytes() >= GROUP_BYTES {
            self.send_group();
        }
    }

    /// Waits until every required sink has room, then sends the group. Meanwhile nothing more is read: the log is the queue.
    pub(super) fn send_group(&mut self) {
        let FlushGroup { messages, updates } = std::mem::take(&mut self.group);
        if updates.is_empty() {
            return;
        }
        let batches: Vec<Batch> = messages
            .into_iter()
            .map(|encoded| Batch::new(encoded.signal, encoded.items, encoded.bytes))
            .collect();
        let reserved = self.reserve(&batches);
        let sent = self.checkpointer.send(&self.ingress, batches, reserved, updates);
        self.is_closed |= sent.is_err();
    }

    /// Returns whether the sinks keep up, so that small batches do not fill their queues.
    pub(super) fn has_room(&self) -> bool {
        self.is_shutting_down || self.checkpointer.in_flight().1 < FLUSHES_IN_FLIGHT
    }

    /// Returns the checkpoint of a path.
    pub(super) fn checkpoint_of(&mut self, path: &Path) -> Option<FileCheckpoint> {
        self.send_group();
        self.checkpointer.checkpoint_of(path)
    }

    /// Returns the checkpoint of the newest file of a run.
    pub(super) fn newest_of_run(&mut self, format: &str, run: &Run) -> Option<FileCheckpoint> {
        self.send_group();
        self.checkpointer.newest_of_run(format, &run.id, run.attempt)
    }

    pub(super) fn is_finished(&mut self, file: &File) -> io::Result<bool> {
        self.send_group();
        self.checkpointer.is_finished(file)
    }

    /// Returns whether the file at a path was read to its end before. Returns `false` if it cannot be opened.
    pub(super) fn is_finished_at(&mut self, path: &Path) -> bool {
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

    /// Sends the group, and begins to write the checkpoint file, unless it is being written or was written less than
    /// [`SAVE_INTERVAL`] ago.
    pub(super) fn save(&mut self) {
        self.send_group();
        if self.saving.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end_saving();
        }
        if self.saving.is_some() || clock::now() < self.next_save || !self.checkpointer.is_changed() {
            return;
        }
        let checkpointer = self.checkpointer.clone();
        let begun = thread::Builder::new()
            .name("checkpoints".to_owned())
            .spawn(move || checkpointer.save_reporting_once());
        match begun {
            Ok(saving) => self.saving = Some(saving),
            Err(_) => self.save_now(),
        }
    }

    /// Sends the group, and writes the checkpoint file.
    pub(super) fn save_now(&mut self) {
        self.send_group();
        self.end_saving();
        let saved = self.checkpointer.save_reporting_once();
        self.report_saved(saved);
    }

    /// Waits for the thread that writes the checkpoint file.
    fn end_saving(&mut self) {
        if let Some(saving) = self.saving.take() {
            match saving.join() {
                Ok(saved) => self.report_saved(saved),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }

    /// Reports a failed write of the checkpoint file. A persistent failure is reported once.
    fn report_saved(&mut self, saved: Result<(), TailError>) {
        self.next_save = clock::later(clock::now(), SAVE_INTERVAL);
        if let Err(error) = saved {
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
            thread::sleep(STOP_CHECK);
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

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::Signal;

    use super::*;

    fn encoded(signal: Signal, len: usize) -> Encoded {
        Encoded {
            signal,
            items: 1,
            bytes: vec![len as u8; len],
        }
    }

    #[test]
    fn group_joins_small_messages_of_a_signal_in_their_order() {
        let mut group = FlushGroup::default();
        let lens = [(Signal::Metrics, 3), (Signal::Traces, 4), (Signal::Metrics, 5)];
        for (signal, len) in lens.into_iter().chain([(Signal::Traces, JOINED_BYTES)]) {
            group.add(encoded(signal, len));
        }
        let messages = group.messages.iter();
        let joined: Vec<_> = messages
            .map(|message| (message.signal, message.items, message.bytes.len()))
            .collect();
        assert_eq!(
            joined,
            [
                (Signal::Metrics, 2, 8),
                (Signal::Traces, 1, 4),
                (Signal::Traces, 1, JOINED_BYTES)
            ]
        );
        assert_eq!(group.messages[0].bytes, [3, 3, 3, 5, 5, 5, 5, 5]);
        assert_eq!(group.bytes(), 12 + JOINED_BYTES);
    }
}
