//! The thread of a follower: polls its files in turn, on a notification or when the poll interval is over.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use pulsetrain_pipeline::{
    Ingress,
    clock::{self, Instant},
};

use super::{
    TailConfig, TailSource, TailStatus,
    candidates::{Candidate, Candidates},
    context::TailContext,
    followed_file::{FollowedFile, NextAction},
    links::LinkPolicy,
    pattern_walk::WalkBudget,
    wakeup::Wakeup,
    watch::Watch,
};
use crate::TailError;

/// The most entries of folders that one poll reads for a pattern, and the longest that it takes. The next poll continues.
const WALK_ENTRIES: usize = 100_000;
const WALK_TIME: Duration = Duration::from_millis(200);

/// The most refused links that are reported, so that their number does not fill a log.
const REPORTED_LINKS: usize = 100;

/// Follows all files of a source.
pub(super) struct Follower {
    candidates: Candidates,
    watch: Watch,
    files: Vec<FollowedFile>,
    by_path: HashMap<PathBuf, usize>,
    context: TailContext,
    wakeup: Arc<Wakeup>,
    status: Arc<TailStatus>,
    next_poll: Instant,
    has_reported_waiting: bool,
    /// The messages of refused links.
    reported_links: HashSet<String>,
    config: TailConfig,
}

impl Follower {
    pub(super) fn new(source: TailSource, ingress: Ingress, wakeup: Arc<Wakeup>) -> Self {
        let (candidates, errors) = Candidates::new(&source.config.inputs, source.config.follow_links);
        let watch = if source.config.watch {
            Watch::new(Arc::clone(&wakeup))
        } else {
            Watch::none()
        };
        let mut context = TailContext::new(
            &source.config,
            source.checkpointer,
            ingress,
            Arc::clone(&wakeup),
            source.on_event,
            source.on_poll,
        );
        errors.into_iter().for_each(|error| context.report_problem(error));
        Self {
            candidates,
            watch,
            files: Vec::new(),
            by_path: HashMap::new(),
            context,
            wakeup,
            status: source.status,
            next_poll: clock::now(),
            has_reported_waiting: false,
            reported_links: HashSet::new(),
            config: source.config,
        }
    }

    /// Follows until it is stopped or the pipeline is closed.
    pub(super) fn run(mut self) {
        loop {
            let round = clock::now();
            self.poll_round();
            if self.context.is_closed() || self.pause(round) {
                break;
            }
        }
        self.finish();
    }

    fn poll_round(&mut self) {
        let deadline = if self.is_busy() {
            clock::now()
        } else {
            self.next_poll
        };
        let reasons = self.wakeup.wait(deadline);
        if reasons.stop {
            return;
        }
        if reasons.rescan || clock::now() >= self.next_poll {
            self.rescan();
        } else {
            self.poll_changed(&reasons.changed);
        }
        self.context.save();
        self.update_status();
    }

    /// Resolves the inputs to files and polls all of them.
    fn rescan(&mut self) {
        self.next_poll = clock::later(clock::now(), self.config.poll_interval);
        let named = self.candidates.named().filter(|path| !path.is_dir());
        let named: Vec<Candidate> = named
            .map(|path| Candidate {
                path: path.to_owned(),
                links: LinkPolicy::Anywhere,
            })
            .collect();
        let (found, refused) = self.candidates.find(WalkBudget {
            entries: WALK_ENTRIES,
            until: clock::later(clock::now(), WALK_TIME),
        });
        named
            .into_iter()
            .chain(found)
            .for_each(|candidate| self.follow(candidate));
        refused.into_iter().for_each(|error| self.report_refused(error));
        self.candidates
            .folders()
            .for_each(|folder| self.watch.add(folder));
        self.poll_files(|_| true);
        self.report_waiting();
        self.status
            .set_logs(self.files.iter().map(FollowedFile::status).collect());
    }

    /// Polls the changed files, and those with an action left over from the last round.
    fn poll_changed(&mut self, changed: &HashSet<PathBuf>) {
        self.poll_files(|file| file.next() != NextAction::Wait || changed.contains(file.path()));
    }

    /// Polls files. Of more than the configured number, the others are open only while they are read.
    fn poll_files(&mut self, is_due: impl Fn(&FollowedFile) -> bool) {
        let mut open = self.files.iter().filter(|file| file.has_handle()).count();
        for file in self.files.iter_mut().filter(|file| is_due(file)) {
            open -= usize::from(file.has_handle());
            file.poll(&mut self.context);
            if open >= self.config.open_files {
                file.close_handle();
            }
            open += usize::from(file.has_handle());
        }
    }

    /// Reports once, after the first scan, the configured paths that do not exist: a name may be wrong.
    fn report_waiting(&mut self) {
        if std::mem::replace(&mut self.has_reported_waiting, true) {
            return;
        }
        for path in self.candidates.named().filter(|path| !path.is_dir()) {
            let file = self.by_path.get(path).and_then(|place| self.files.get(*place));
            if file.is_some_and(|file| file.reader().is_none()) {
                self.context.report_waiting(path);
            }
        }
    }

    fn report_refused(&mut self, error: TailError) {
        if self.reported_links.len() < REPORTED_LINKS && self.reported_links.insert(error.to_string()) {
            self.context.report_problem(error);
        }
    }

    fn follow(&mut self, Candidate { path, links }: Candidate) {
        if let Some(place) = self.by_path.get(&path) {
            // The input may be a link that leads to another folder now.
            self.files[*place].set_links(links);
            return;
        }
        if let Some(folder) = path.parent() {
            self.watch.add(folder);
        }
        self.by_path.insert(path.clone(), self.files.len());
        self.files.push(FollowedFile::new(path, links));
    }

    /// Waits for the flush interval, so that one batch holds all that is written meanwhile. Returns whether to stop.
    fn pause(&self, round: Instant) -> bool {
        if self.has_unread() {
            self.wakeup.is_stopped()
        } else {
            self.wakeup.pause(clock::later(round, self.config.flush_interval))
        }
    }

    fn has_unread(&self) -> bool {
        self.files.iter().any(|file| file.next() == NextAction::Read)
    }

    fn is_busy(&self) -> bool {
        self.files.iter().any(|file| file.next() != NextAction::Wait)
    }

    fn update_status(&self) {
        let files = self.files.iter().filter(|file| file.reader().is_some()).count();
        self.status.set(files as u64, self.unread_bytes());
    }

    fn unread_bytes(&self) -> u64 {
        self.files.iter().map(FollowedFile::unread_bytes).sum()
    }

    /// Reads the files as they are now and sends everything that was read.
    fn finish(mut self) {
        self.context.begin_shutdown();
        self.rescan();
        while self.context.finishes_at_stop() && !self.context.is_closed() && self.has_unread() {
            self.poll_changed(&HashSet::new());
            self.context.send_group();
        }
        if self.context.finishes_at_stop() && self.context.is_closed() {
            let bytes = self.unread_bytes();
            if bytes > 0 {
                self.context.report_problem(TailError::Unread { bytes });
            }
        }
        for file in self.files.drain(..) {
            file.finish(&mut self.context);
        }
        self.context.meter().end_poll(Duration::ZERO, None);
        self.context.save_now();
        self.status.set(0, 0);
        self.status.set_logs(Vec::new());
    }
}
