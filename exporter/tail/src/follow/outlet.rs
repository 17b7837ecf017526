//! What a stream has of the world: the door that it sends through, the positions that it keeps, the user that it tells.

use std::{collections::HashSet, fs::File, io, path::Path, sync::Arc, time::Duration};

use pulsetrain_otlp::write::Encoded;
use pulsetrain_pipeline::{
    Batch, Door, Reservation, ReserveError,
    clock::{self, Instant},
};

use super::{
    AtStop, Positions, TailConfig, TailEvent, TailReading, bell::Bell, identity::Inode, measured::Measuring,
    positions::Update, reading::Reading, saved::FilePosition,
};
use crate::{ImportReport, RunOptions, TailError};
use pulsetrain_record::Run;

/// While so many flushes are on their way, what is read waits for the next one: batches grow instead of becoming more.
const FLUSHES_UNDER_WAY: usize = 64;

/// While so many bytes are on their way, a long backlog is left in its file. A quarter of what a queue holds by default.
const BYTES_UNDER_WAY: usize = 16 << 20;

/// How long sinks that are not required hold up the reading, and how long all of them do once the follower ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a follower that waits for room checks whether it is to stop.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// How often positions are written at most.
const SAVE_INTERVAL: Duration = Duration::from_millis(500);

/// The way out of all streams of a follower.
pub(super) struct Outlet {
    positions: Positions,
    door: Door,
    bell: Arc<Bell>,
    on_event: Box<dyn FnMut(TailEvent) + Send>,
    measuring: Measuring,
    options: RunOptions,
    at_stop: AtStop,
    followed: HashSet<Inode>,
    is_ending: bool,
    is_closed: bool,
    next_save: Instant,
}

impl Outlet {
    pub(super) fn new(
        config: &TailConfig,
        positions: Positions,
        door: Door,
        bell: Arc<Bell>,
        on_event: Box<dyn FnMut(TailEvent) + Send>,
        on_reading: Box<dyn FnMut(TailReading) + Send>,
    ) -> Self {
        Self {
            positions,
            door,
            bell,
            on_event,
            measuring: Measuring::new(on_reading),
            options: config.options.clone(),
            at_stop: config.at_stop,
            followed: HashSet::new(),
            is_ending: false,
            is_closed: false,
            next_save: clock::now(),
        }
    }

    /// Waits until every required sink has room, and sends batches; the update counts when they have arrived. Until then
    /// the log is the queue: nothing more of it is read.
    pub(super) fn send(&mut self, batches: Vec<Encoded>, update: Option<Update>) {
        let batches: Vec<Batch> = batches
            .into_iter()
            .map(|encoded| Batch::new(encoded.signal, encoded.items, encoded.bytes))
            .collect();
        let reserved = self.reserve(&batches);
        let sent = self.positions.send(&self.door, batches, reserved, update);
        self.is_closed |= sent.is_err();
    }

    /// Whether the sinks keep up, so that small batches do not fill their queues.
    pub(super) fn has_room(&self) -> bool {
        self.is_ending || self.positions.unsettled().1 < FLUSHES_UNDER_WAY
    }

    /// The position of an earlier follower.
    pub(super) fn position_of(&self, path: &Path) -> Option<FilePosition> {
        self.positions.of(path)
    }

    /// The position in the newest file of a run.
    pub(super) fn newest_of_run(&self, format: &str, run: &Run) -> Option<FilePosition> {
        self.positions.newest_of_run(format, &run.id, run.attempt)
    }

    pub(super) fn is_finished(&self, file: &File) -> io::Result<bool> {
        self.positions.is_finished(file)
    }

    /// Whether the file at a path was read to its end before; one that cannot be opened is not.
    pub(super) fn is_finished_at(&self, path: &Path) -> bool {
        File::open(path).is_ok_and(|file| self.is_finished(&file).unwrap_or(false))
    }

    /// Whether a file is being read, under whatever name.
    pub(super) fn is_followed(&self, inode: Inode) -> bool {
        self.followed.contains(&inode)
    }

    pub(super) fn begin_to_follow(&mut self, inode: Inode) {
        self.followed.insert(inode);
    }

    pub(super) fn end_to_follow(&mut self, inode: Inode) {
        self.followed.remove(&inode);
    }

    pub(super) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Where is noted what is measured.
    pub(super) fn measuring(&mut self) -> &mut Measuring {
        &mut self.measuring
    }

    pub(super) fn begin_to_end(&mut self) {
        self.is_ending = true;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub(super) fn finishes_at_stop(&self) -> bool {
        self.at_stop == AtStop::Finish
    }

    /// Whether the pipeline takes no more.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Reports a path in which the pattern of the user finds no rank.
    pub(super) fn check_rank(&mut self, path: &str) {
        let missed = self.options.rank.missed(path).map(|pattern| TailError::NoRank {
            name: path.to_owned(),
            pattern: pattern.to_owned(),
        });
        missed.into_iter().for_each(|error| self.tell_problem(error));
    }

    /// Enters the ranks that a reading has recorded since the last call; one that another file has too is reported.
    pub(super) fn claim(&mut self, reading: &mut Reading) {
        for shared in reading.claim(&self.options.claims) {
            self.tell_problem(shared);
        }
    }

    /// Forgets what a reading has entered.
    pub(super) fn leave(&self, reading: &Reading) {
        self.options.claims.leave(&reading.name());
    }

    pub(super) fn tell_waiting(&mut self, path: &Path) {
        (self.on_event)(TailEvent::Waiting {
            path: path.to_owned(),
        });
    }

    pub(super) fn tell_opened(&mut self, reading: &Reading, offset: u64) {
        (self.on_event)(reading.opened(offset));
    }

    pub(super) fn tell_ended(&mut self, report: ImportReport) {
        (self.on_event)(TailEvent::Ended(Box::new(report)));
    }

    pub(super) fn tell_problem(&mut self, error: TailError) {
        (self.on_event)(TailEvent::Problem(error));
    }

    /// Writes the positions, where that was not done just now. Trouble is told once.
    pub(super) fn save(&mut self) {
        if clock::now() >= self.next_save {
            self.save_now();
        }
    }

    pub(super) fn save_now(&mut self) {
        self.next_save = clock::later(clock::now(), SAVE_INTERVAL);
        if let Err(error) = self.positions.keep_saved() {
            self.tell_problem(error);
        }
    }

    /// Reserves room at the required sinks. An ending follower that finds none sends what it has read all the same, beyond
    /// the bounds of the queues, and reads no more.
    fn reserve(&mut self, batches: &[Batch]) -> Reservation {
        if batches.is_empty() || self.is_closed {
            return Reservation::default();
        }
        self.door.blocking_pace(batches, PATIENCE);
        let (is_ending, bell) = (self.is_ending, &self.bell);
        let mut patience = None;
        let mut gives_up = || {
            let now = clock::now();
            let until = || clock::later(now, PATIENCE);
            (is_ending || bell.is_stop()) && now >= *patience.get_or_insert_with(until)
        };
        let mut is_over = false;
        while !is_over && self.positions.unsettled().0 > BYTES_UNDER_WAY {
            std::thread::sleep(STOP_CHECK);
            is_over = gives_up();
        }
        let reserved = match is_over {
            true => Err(ReserveError::Full),
            false => self.door.blocking_reserve(batches, gives_up),
        };
        self.is_closed |= reserved.is_err();
        reserved.unwrap_or_default()
    }
}
