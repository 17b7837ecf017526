//! The witness: a process of a few pages that receives the signals which are sent to more processes than the keeper, and
//! reports them.
//!
//! A trainer with pipes shares the process group of the keeper, and so does the witness: a signal to the group reaches all
//! three. A trainer on a terminal of its own has a session of its own. Only a sender that signals every process reaches
//! the trainer and the keeper, so the witness has a session of its own as well.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, WaitOptions, setsid, waitpid},
};

use crate::{
    process::fork,
    signals::{SignalReader, SignalSet},
};

/// The bit of a byte from the witness that marks an answer; other bytes are signals.
const ANSWER: u8 = 1 << 7;

/// The keeper's side of the witness.
pub(crate) struct Witness {
    pid: Pid,
    questions: File,
    reports: File,
}

/// A report of the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The witness received this signal.
    Signal(i32),
    /// The answer to a question: every signal before it has been reported.
    Answer(u8),
}

impl Witness {
    /// Starts a witness in the process group of the keeper, or in a session of its own.
    ///
    /// # Errors
    /// The limit on processes or descriptors is reached.
    pub(crate) fn start(has_own_session: bool) -> io::Result<Self> {
        let (asked, questions) = pipe_with(PipeFlags::CLOEXEC)?;
        let (reports, reporting) = pipe_with(PipeFlags::CLOEXEC)?;
        for end in [reports.as_fd(), reporting.as_fd(), questions.as_fd()] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        let kept = [asked.as_fd(), reporting.as_fd()];
        let pid = fork(&kept, || {
            if has_own_session {
                // It fails only for the leader of a group, which a fork is not.
                let _ = setsid();
            }
            let ends = [&asked, &reporting].map(OwnedFd::try_clone);
            if let [Ok(asked), Ok(reporting)] = ends {
                drop(witness(asked.into(), reporting.into()));
            }
        })?;
        Ok(Self {
            pid,
            questions: questions.into(),
            reports: reports.into(),
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Ends the witness, so that no process has to reap it after the keeper.
    pub(crate) fn end(self) {
        drop(self.questions);
        // It fails only if the witness was reaped already.
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// Asks a question; the answer follows the reports of all signals before it.
    ///
    /// # Errors
    /// The witness was killed, or does not read.
    pub(crate) fn ask(&self, question: u8) -> io::Result<()> {
        (&self.questions).write_all(&[question])
    }

    /// Returns the next report, or `None` without one.
    pub(crate) fn next(&self) -> Option<Report> {
        let mut byte = [0];
        let read = (&self.reports).read(&mut byte).ok()?;
        (read > 0).then(|| match byte[0] {
            answer if answer & ANSWER != 0 => Report::Answer(answer & !ANSWER),
            signal => Report::Signal(i32::from(signal)),
        })
    }
}

impl AsFd for Witness {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

/// Reports all signals until the keeper ends; they are blocked.
fn witness(mut asked: File, mut reporting: File) -> io::Result<()> {
    let signals = SignalReader::new(&SignalSet::all())?;
    let mut question = [0];
    loop {
        let mut ready = [
            PollFd::new(&signals, PollFlags::IN),
            PollFd::new(&asked, PollFlags::IN),
        ];
        // All signals are blocked, so nothing interrupts the wait.
        poll(&mut ready, None)?;
        let is_asked = !ready[1].revents().is_empty();
        if is_asked && asked.read(&mut question)? == 0 {
            return Ok(());
        }
        while let Some(received) = signals.next() {
            let signal = u8::try_from(received.signal).unwrap_or_default();
            // A keeper that is stopped for a long time misses reports of signals that it has not received either.
            let _ = reporting.write(&[signal]);
        }
        if is_asked {
            let _ = reporting.write(&[question[0] | ANSWER]);
        }
    }
}
