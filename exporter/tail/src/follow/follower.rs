//! The one thread of a follower: looks after its streams in turn, whenever something changed or the time has come.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use pulsetrain_pipeline::{
    Door,
    clock::{self, Instant},
};

use super::{
    TailConfig, TailSource, TailStatus,
    bell::Bell,
    candidates::Candidates,
    outlet::Outlet,
    stream::{Next, Stream},
    watch::Watch,
};
use crate::TailError;

/// How many files are kept open; the others are opened when they change.
const KEPT_OPEN: usize = 256;

/// Looks after everything that a source follows.
pub(super) struct Follower {
    candidates: Candidates,
    watch: Watch,
    streams: Vec<Stream>,
    by_path: HashMap<PathBuf, usize>,
    outlet: Outlet,
    bell: Arc<Bell>,
    status: Arc<TailStatus>,
    next_poll: Instant,
    has_told_waiting: bool,
    config: TailConfig,
}

impl Follower {
    pub(super) fn new(source: TailSource, door: Door, bell: Arc<Bell>) -> Self {
        let (candidates, errors) = Candidates::new(&source.config.inputs);
        let watch = if source.config.watch {
            Watch::new(Arc::clone(&bell))
        } else {
            Watch::none()
        };
        let mut outlet = Outlet::new(
            &source.config,
            source.positions,
            door,
            Arc::clone(&bell),
            source.on_event,
            source.on_reading,
        );
        errors.into_iter().for_each(|error| outlet.tell_problem(error));
        Self {
            candidates,
            watch,
            streams: Vec::new(),
            by_path: HashMap::new(),
            outlet,
            bell,
            status: source.status,
            next_poll: clock::now(),
            has_told_waiting: false,
            config: source.config,
        }
    }

    /// Follows until it is told to stop, or nobody takes what is read.
    pub(super) fn run(mut self) -> Result<(), String> {
        loop {
            let round = clock::now();
            self.look_round();
            if self.outlet.is_closed() || self.pause(round) {
                break;
            }
        }
        self.end();
        Ok(())
    }

    fn look_round(&mut self) {
        let until = if self.is_busy() {
            clock::now()
        } else {
            self.next_poll
        };
        let rung = self.bell.wait(until);
        if rung.stop {
            return;
        }
        if rung.look_everywhere || clock::now() >= self.next_poll {
            self.look_everywhere();
        } else {
            self.look_at(&rung.changed);
        }
        self.outlet.save();
        self.tell_status();
    }

    /// Looks at every path, and for new ones.
    fn look_everywhere(&mut self) {
        self.next_poll = clock::later(clock::now(), self.config.poll_interval);
        let named: Vec<PathBuf> = self
            .candidates
            .named()
            .filter(|path| !path.is_dir())
            .map(Path::to_owned)
            .collect();
        let found = self.candidates.found();
        named.into_iter().chain(found).for_each(|path| self.follow(path));
        self.candidates
            .folders()
            .for_each(|folder| self.watch.add(folder));
        for stream in &mut self.streams {
            stream.look(&mut self.outlet);
        }
        self.tell_waiting();
        self.close_handles();
    }

    /// Looks at what changed, and at what was left over from the last round.
    fn look_at(&mut self, changed: &HashSet<PathBuf>) {
        for stream in &mut self.streams {
            if stream.next() != Next::Change || changed.contains(stream.path()) {
                stream.look(&mut self.outlet);
            }
        }
    }

    /// Tells at the beginning of what was named and is not there: its name may be wrong.
    fn tell_waiting(&mut self) {
        if std::mem::replace(&mut self.has_told_waiting, true) {
            return;
        }
        for path in self.candidates.named().filter(|path| !path.is_dir()) {
            let stream = self.by_path.get(path).and_then(|place| self.streams.get(*place));
            if stream.is_some_and(|stream| stream.reading().is_none()) {
                self.outlet.tell_waiting(path);
            }
        }
    }

    fn follow(&mut self, path: PathBuf) {
        if self.by_path.contains_key(&path) {
            return;
        }
        if let Some(folder) = path.parent() {
            self.watch.add(folder);
        }
        self.by_path.insert(path.clone(), self.streams.len());
        self.streams.push(Stream::new(path));
    }

    /// Lets the flush interval pass, so that what is written meanwhile goes in one batch. Says whether to stop.
    fn pause(&self, round: Instant) -> bool {
        let reads_on = self.streams.iter().any(|stream| stream.next() == Next::Read);
        if reads_on {
            self.bell.is_stop()
        } else {
            self.bell.pause(clock::later(round, self.config.flush_interval))
        }
    }

    fn is_busy(&self) -> bool {
        self.streams.iter().any(|stream| stream.next() != Next::Change)
    }

    fn close_handles(&mut self) {
        let open = |stream: &Stream| stream.reading().is_some_and(|reading| reading.has_handle());
        let excess = self
            .streams
            .iter()
            .filter(|stream| open(stream))
            .count()
            .saturating_sub(KEPT_OPEN);
        self.streams
            .iter_mut()
            .filter(|stream| open(stream))
            .take(excess)
            .for_each(Stream::close_handle);
    }

    fn tell_status(&self) {
        let files = self
            .streams
            .iter()
            .filter(|stream| stream.reading().is_some())
            .count();
        let unread = self.streams.iter().map(Stream::unread_bytes).sum();
        self.status.set(files as u64, unread);
    }

    /// Reads what is there and sends everything that was read.
    fn end(mut self) {
        self.outlet.begin_to_end();
        self.look_everywhere();
        while self.outlet.finishes_at_stop()
            && !self.outlet.is_closed()
            && self.streams.iter().any(|stream| stream.next() == Next::Read)
        {
            self.look_at(&HashSet::new());
        }
        if self.outlet.finishes_at_stop() && self.outlet.is_closed() {
            let bytes: u64 = self.streams.iter().map(Stream::unread_bytes).sum();
            if bytes > 0 {
                self.outlet.tell_problem(TailError::Unread { bytes });
            }
        }
        for stream in self.streams.drain(..) {
            stream.end(&mut self.outlet);
        }
        self.outlet.measuring().end_look(Duration::ZERO, None);
        self.outlet.save_now();
        self.status.set(0, 0);
    }
}
