//! The keeper: the process that the user starts. It has one thread, which waits for signals, keys and the ends of its
//! children, and never for a reader or a writer.

use std::{ffi::OsString, io, os::fd::OwnedFd, process::Command, time::Duration};

use libc::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGWINCH, SIGXCPU};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, WaitStatus},
    time::{ClockId, clock_gettime},
};

mod incident;

pub use self::incident::Incident;
use crate::{
    arrivals::{Arrivals, Decided, Millis},
    copier::{Copier, exporter_pipe},
    exporter::{Exporter, Handover},
    job,
    process::{exit_code, reap},
    signals::{OriginalSignals, Received, SignalReader, SignalSet, send, send_to_group, suspend_self},
    terminal::copy_window,
    trainer::{Outlets, Trainer},
    witness::{Report, Witness},
};

/// The minimum time for the copiers to write the last output of the trainer.
const LAST_OUTPUT: Millis = 1_000;

/// The time that the exporter gets in addition to its own time limits.
const EXPORTER_END: Millis = 5_000;

/// The time after the end of the trainer in which a signal is a repetition of the one that ended it.
const REPETITION: Millis = 200;

/// The limit on the processes that are started in the place of others.
const MAX_RESTARTS: u32 = 1_000;

/// A trainer to run.
pub struct Launch<'a> {
    /// The program and its arguments.
    pub command: &'a [OsString],
    /// The variables that are added to its environment.
    pub variables: &'a [(&'a str, String)],
    /// Returns the program that reads the copy of the output.
    pub exporter: &'a dyn Fn(&Handover) -> Command,
    /// The time limit after the end of the trainer for the output of its remaining children, and for each part of the
    /// work of the exporter.
    pub drain: Duration,
}

/// Runs a trainer to its end, and returns its exit code. The calling process must have one thread only.
///
/// # Errors
/// The program cannot be executed.
pub fn keep(launch: &Launch<'_>, report: &mut dyn FnMut(&Incident)) -> io::Result<u8> {
    let handled = SignalSet::handled();
    let original = OriginalSignals::replace_by(&handled)?;
    let signals = SignalReader::new(&handled)?;
    let has_own_terminal = Outlets::have_terminal();
    let witness = Witness::start(has_own_terminal).ok();
    let start = |outlets| Trainer::start(launch.command, launch.variables, outlets, original);
    let copied = |(outlets, copiers, pipes)| match start(outlets) {
        Ok(trainer) => Ok((trainer, copiers, pipes)),
        Err(error) => Err((has_no_room(&error), error)),
    };
    let started = prepare().map_err(|error| (true, error)).and_then(copied);
    let (trainer, copiers, pipes) = match started {
        Err((true, error)) => {
            report(&Incident::NotCopied(error));
            (start(Outlets::inherited())?, Vec::new(), Vec::new())
        }
        started => started.map_err(|(_, error)| error)?,
    };
    let exporter = if pipes.is_empty() {
        None
    } else {
        let started = Exporter::start(launch.exporter, &pipes);
        started
            .map_err(|error| report(&Incident::ExporterNotStarted(error)))
            .ok()
    };
    // Only the exporter holds the ends to read from, so that its death is noticed.
    drop(pipes);
    let mut keeper = Keeper {
        signals,
        witness,
        has_own_terminal,
        arrivals: Arrivals::default(),
        trainer,
        copiers,
        exporter,
        restarts: 0,
        drain: Millis::try_from(launch.drain.as_millis()).unwrap_or(Millis::MAX),
        end: None,
        report,
    };
    loop {
        if let Some(code) = keeper.step() {
            if let Some(witness) = keeper.witness {
                witness.end();
            }
            return Ok(code);
        }
    }
}

/// Returns whether a program could not be started because of a limit on processes, open files or memory.
fn has_no_room(error: &io::Error) -> bool {
    let limits = [libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::ENOMEM];
    error.raw_os_error().is_some_and(|error| limits.contains(&error))
}

/// Opens the output of a trainer, and starts its copiers. Returns the pipes for the exporter as well.
fn prepare() -> io::Result<(Outlets, Vec<Copier>, Vec<OwnedFd>)> {
    let (outlets, streams) = Outlets::open()?;
    let (mut copiers, mut pipes) = (Vec::new(), Vec::new());
    for stream in streams {
        let (read, write) = exporter_pipe()?;
        copiers.push(Copier::start(stream, Some(write))?);
        pipes.push(read);
    }
    Ok((outlets, copiers, pipes))
}

struct Keeper<'a> {
    signals: SignalReader,
    witness: Option<Witness>,
    has_own_terminal: bool,
    arrivals: Arrivals,
    trainer: Trainer,
    copiers: Vec<Copier>,
    exporter: Option<Exporter>,
    /// The number of processes that were started in the place of others.
    restarts: u32,
    drain: Millis,
    end: Option<End>,
    report: &'a mut dyn FnMut(&Incident),
}

/// The end of the trainer.
struct End {
    code: u8,
    at: Millis,
    /// Whether the exporter knows of it, because the output has been copied.
    is_sent: bool,
    /// The time limit of this phase.
    until: Millis,
}

impl Keeper<'_> {
    /// Waits for the next event and handles it; returns the exit code at the end.
    fn step(&mut self) -> Option<u8> {
        self.wait();
        while let Some(received) = self.signals.next() {
            if let Some(code) = self.receive(received) {
                return Some(code);
            }
        }
        self.decide();
        self.finish()
    }

    /// Waits for a signal, a report of the witness, a key, or the next deadline.
    fn wait(&mut self) {
        let now = now();
        let end = self.end.as_ref().map(|end| end.until);
        let Self {
            trainer,
            signals,
            witness,
            arrivals,
            ..
        } = self;
        let keys = trainer.keys();
        let due = [arrivals.due(), end, keys.as_ref().and_then(|keys| keys.due(now))];
        let timeout = due
            .into_iter()
            .flatten()
            .min()
            .map(|due| timespec(due.saturating_sub(now)));
        let mut awaited = vec![PollFd::new(signals, PollFlags::IN)];
        awaited.extend(
            witness
                .as_ref()
                .map(|witness| PollFd::new(witness, PollFlags::IN)),
        );
        let others = awaited.len();
        let key = keys.as_ref().and_then(|keys| keys.awaited(now));
        awaited.extend(key.map(|(fd, event)| PollFd::from_borrowed_fd(fd, event)));
        // An error has no event; the handled signals are blocked, and so do not interrupt the wait.
        let _ = poll(&mut awaited, timeout.as_ref());
        let event = awaited.get(others).map(PollFd::revents);
        drop(awaited);
        if let (Some(event), Some(keys)) = (event.filter(|event| !event.is_empty()), keys) {
            keys.pass(event, now);
        }
    }

    /// Handles a signal; returns the exit code if the program ends now.
    fn receive(&mut self, received: Received) -> Option<u8> {
        if received.signal == SIGCHLD {
            while let Some((pid, status)) = reap() {
                self.observe_exit(pid, status);
            }
            return None;
        }
        if let Some(end) = &self.end {
            let is_to_end = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(&received.signal);
            if !is_to_end || now() < end.at + REPETITION {
                return None;
            }
            self.trainer.give_back_terminal();
            if let Some(exporter) = &self.exporter {
                exporter.abort();
            }
            return Some(end.code);
        }
        let settings = self.trainer.saved_settings();
        match (received.signal, self.trainer.terminal()) {
            (SIGWINCH, Some(terminal)) => copy_window(terminal),
            (SIGCONT, Some(terminal)) => {
                copy_window(terminal);
                job::resume(self.trainer.pid(), settings.as_ref());
            }
            (SIGTSTP, Some(_)) => {
                job::suspend(self.trainer.pid(), settings.as_ref());
                // An echo of the key must not appear after the prompt of the shell.
                self.send_to_copiers(SIGSTOP);
                suspend_self();
                self.send_to_copiers(SIGCONT);
            }
            // The keeper has reached its own limit (`ulimit -t`); the trainer has one, too.
            (SIGXCPU, _) if received.is_from_kernel => {}
            _ => self.arrivals.receive(received, now()),
        }
        None
    }

    fn send_to_copiers(&self, signal: i32) {
        self.copiers.iter().for_each(|copier| send(copier.pid(), signal));
    }

    /// Forwards the signals that the trainer has not received.
    fn decide(&mut self) {
        let now = now();
        while let Some(report) = self.witness.as_ref().and_then(Witness::next) {
            match report {
                Report::Signal(signal) => self.arrivals.report(signal, now),
                Report::Answer(question) => self.arrivals.answer(Some(question)),
            }
        }
        if let Some(question) = self.arrivals.question(now) {
            let asked = self
                .witness
                .as_ref()
                .is_some_and(|witness| witness.ask(question).is_ok());
            if !asked {
                self.arrivals.answer(None);
            }
        }
        for decided in self.arrivals.decided(now) {
            self.forward(decided);
        }
    }

    fn forward(&self, Decided { received, is_shared }: Decided) {
        if self.end.is_some() {
            return;
        }
        let trainer = self.trainer.pid();
        if !is_shared {
            // A key of the outer terminal is for all processes in the foreground, as it would be on the trainer's own.
            if received.is_from_kernel && self.trainer.terminal().is_some() {
                send_to_group(trainer, received.signal);
            } else {
                send(trainer, received.signal);
            }
        }
        if received.signal == SIGTSTP {
            suspend_self();
        }
    }

    /// Handles the exit of a child; an orphan of process 1 needs nothing else.
    fn observe_exit(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.trainer.pid() && self.end.is_none() {
            let at = now();
            self.end = Some(End {
                code: exit_code(status),
                at,
                is_sent: false,
                until: at.saturating_add(self.drain.max(LAST_OUTPUT)),
            });
        } else if self
            .exporter
            .as_ref()
            .is_some_and(|exporter| exporter.pid() == pid)
        {
            self.exporter = None;
            let was_asked = self.end.as_ref().is_some_and(|end| end.is_sent);
            if !was_asked || status.terminating_signal().is_some() {
                (self.report)(&Incident::ExporterEnded(status));
            }
        } else if self.witness.as_ref().is_some_and(|witness| witness.pid() == pid) {
            self.witness = None;
            if self.may_restart() {
                self.witness = Witness::start(self.has_own_terminal).ok();
            }
        } else if let Some(at) = self.copiers.iter().position(|copier| copier.pid() == pid) {
            self.observe_copier_exit(at, status);
        }
    }

    fn observe_copier_exit(&mut self, at: usize, status: WaitStatus) {
        if status.exit_status() != Some(0) && self.may_restart() {
            match self.copiers[at].restart() {
                Ok(()) => return,
                Err(error) => (self.report)(&Incident::NotCopied(error)),
            }
        }
        // Closes the stream for the trainer, and the pipe of the exporter.
        let copier = self.copiers.swap_remove(at);
        let loss = copier.loss();
        if loss.bytes > 0 {
            (self.report)(&Incident::OutputLost(loss));
        }
    }

    fn may_restart(&mut self) -> bool {
        self.restarts += 1;
        self.restarts <= MAX_RESTARTS
    }

    /// Returns the exit code when the output has been copied and the exporter has ended, or their time is over.
    fn finish(&mut self) -> Option<u8> {
        let now = now();
        let end = self.end.as_mut()?;
        if !end.is_sent {
            if !self.copiers.is_empty() && now < end.until {
                return None;
            }
            self.trainer.give_back_terminal();
            end.is_sent = true;
            end.until = now
                .saturating_add(self.drain.saturating_mul(3))
                .saturating_add(EXPORTER_END);
            if let Some(exporter) = &self.exporter {
                exporter.end(end.code);
            }
        }
        let Some(exporter) = &self.exporter else {
            return Some(end.code);
        };
        if now < end.until {
            return None;
        }
        exporter.kill();
        (self.report)(&Incident::ExporterHangs);
        Some(end.code)
    }
}

/// Returns the time on the monotonic clock.
fn now() -> Millis {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or_default() * 1_000
        + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000_000
}

fn timespec(millis: Millis) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(millis / 1_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(millis % 1_000 * 1_000_000).unwrap_or_default(),
    }
}
