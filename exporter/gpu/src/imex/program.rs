//! Runs a program of the driver's package with a timeout, in its own process group.
//!
//! The group is killed at the end in any case, and the program is reaped only after that. So no other process can have its id
//! when the signal is sent.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
    time::Timespec,
};

/// The limit of an output in bytes. A domain has at most a few hundred nodes.
const MAX_OUTPUT: usize = 1 << 20;
/// The interval of checks for the end of a program.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The process group of the running program, and whether the end was requested.
#[derive(Debug, Default)]
pub(super) struct Running(Mutex<ProgramState>);

#[derive(Debug, Default)]
struct ProgramState {
    group: Option<Pid>,
    is_over: bool,
}

impl Running {
    /// Kills the running program; programs that start later are killed at once.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        kill(state.group);
    }

    /// Returns whether the end was requested.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    fn begin(&self, group: Pid) {
        let mut state = self.lock();
        state.group = Some(group);
        if state.is_over {
            kill(state.group);
        }
    }

    /// Kills the rest of the group, whose leader is not reaped yet.
    fn finish(&self) {
        kill(self.lock().group.take());
    }

    fn lock(&self) -> MutexGuard<'_, ProgramState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kill(group: Option<Pid>) {
    // The kill fails only if the group has already ended.
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// The program cannot be started, fails, prints too much or no text, or does not end in time.
pub(super) fn run(
    program: &Path,
    arguments: &[&str],
    timeout: Duration,
    running: &Running,
) -> Result<String, ProgramError> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(ProgramError::Start)?;
    running.begin(Pid::from_child(&child));
    let mut output = Output::collect(&mut child);
    let read = output.read(&child, clock::later(clock::now(), timeout), running);
    running.finish();
    let status = child.wait();
    match read {
        Ok(true) => {}
        Ok(false) if running.is_over() => return Err(ProgramError::Stopped),
        Ok(false) => return Err(ProgramError::Timeout(timeout)),
        Err(error) => return Err(ProgramError::Pipe(error)),
    }
    let status = status.map_err(ProgramError::Pipe)?;
    if !status.success() {
        return Err(failed(status, &output));
    }
    String::from_utf8(output.text).map_err(|_| ProgramError::NotText)
}

/// The reason why a program did not report a state.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProgramError {
    #[error("cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("was stopped")]
    Stopped,
    #[error("did not end within {0:?} and was killed")]
    Timeout(Duration),
    #[error(transparent)]
    Pipe(io::Error),
    #[error("{status}{}", line.as_ref().map(|line| format!(": {line:?}")).unwrap_or_default())]
    Status {
        status: ExitStatus,
        /// The beginning of its first line of output.
        line: Option<String>,
    },
    #[error("printed no text")]
    NotText,
    #[error("IMEX is not configured")]
    NotConfigured,
    #[error("printed {0:?}")]
    Output(String),
}

fn failed(status: ExitStatus, output: &Output) -> ProgramError {
    let printed = [&output.errors, &output.text].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let line = printed
        .iter()
        .find_map(|text| text.lines().find(|line| !line.trim().is_empty()));
    let line = line.map(super::excerpt);
    ProgramError::Status { status, line }
}

/// The pipes of a program and their output so far; `None` marks the end of a pipe.
struct Output {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    text: Vec<u8>,
    errors: Vec<u8>,
}

impl Output {
    fn collect(child: &mut Child) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            text: Vec::new(),
            errors: Vec::new(),
        }
    }

    /// Reads until the program has ended. Returns `false` if it has not ended by the deadline, or was stopped.
    fn read(&mut self, child: &Child, deadline: Instant, running: &Running) -> io::Result<bool> {
        loop {
            // Another process may hold the pipes open: after the end, only what is in them is read.
            let has_ended = has_ended(child)?;
            let left = deadline.saturating_duration_since(clock::now());
            if !has_ended && (left.is_zero() || running.is_over()) {
                return Ok(false);
            }
            let wait = if has_ended {
                Duration::ZERO
            } else {
                left.min(POLL_INTERVAL)
            };
            let has_read = self.read_some(wait)?;
            if self.text.len().max(self.errors.len()) > MAX_OUTPUT {
                return Err(io::Error::other("printed more than 1 MiB"));
            }
            if has_ended && !has_read {
                return Ok(true);
            }
        }
    }

    /// Waits for output and reads a part of it. Returns whether there was any.
    fn read_some(&mut self, wait: Duration) -> io::Result<bool> {
        let (out, err) = {
            let stdout = self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN));
            let stderr = self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN));
            let has_stdout = stdout.is_some();
            let mut fds: Vec<PollFd<'_>> = [stdout, stderr].into_iter().flatten().collect();
            let wait = Timespec::try_from(wait).unwrap_or_default();
            poll(&mut fds, Some(&wait)).map_err(io::Error::from)?;
            let ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
            (has_stdout && ready(0), ready(usize::from(has_stdout)))
        };
        let is_read = out && read_into(&mut self.stdout, &mut self.text)?;
        Ok(err && read_into(&mut self.stderr, &mut self.errors)? || is_read)
    }
}

/// Reads from a pipe that is ready, and closes it at its end. Returns whether anything was read.
fn read_into<R: Read>(pipe: &mut Option<R>, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let mut part = [0; 8192];
    let read = match pipe {
        Some(pipe) => pipe.read(&mut part)?,
        None => 0,
    };
    if read == 0 {
        *pipe = None;
    }
    bytes.extend_from_slice(&part[..read]);
    Ok(read > 0)
}

/// Returns whether the program has ended; it is not reaped.
fn has_ended(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(Pid::from_child(child)), options)?;
    Ok(status.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<String, String> {
        run(
            Path::new("/bin/sh"),
            &["-c", script],
            timeout,
            &Running::default(),
        )
        .map_err(|error| error.to_string())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn program_output_is_captured_completely() {
        let printed = shell(
            "i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done",
            LONG,
        );
        assert_eq!(printed.unwrap().len(), 5000 * 11);
        assert_eq!(shell("exec >&- 2>&-; true", LONG), Ok(String::new()));
    }

    #[test]
    fn failed_program_is_reported_with_exit_status_and_first_line() {
        let failed = shell("echo >&2 'no daemon'; echo more >&2; exit 3", LONG).unwrap_err();
        assert_eq!(failed, r#"exit status: 3: "no daemon""#);
        let flooded = shell("yes", LONG).unwrap_err();
        assert_eq!(flooded, "printed more than 1 MiB");
        let missing = run(Path::new("/nowhere/ctl"), &[], LONG, &Running::default());
        assert!(matches!(missing, Err(ProgramError::Start(_))));
    }

    #[test]
    fn child_that_keeps_stdout_open_does_not_delay_the_result() {
        assert_eq!(shell("sleep 1000 & echo READY", LONG), Ok("READY\n".to_owned()));
    }

    #[test]
    fn hung_program_is_killed_together_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let hung = shell(&script, Duration::from_millis(300)).unwrap_err();
        assert_eq!(hung, "did not end within 300ms and was killed");
        let pid = std::fs::read_to_string(file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // The kernel ends it some moments after the signal; a process without a parent that reaps it stays a zombie.
        let is_gone = || !std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let end = clock::later(clock::now(), LONG);
        while !is_gone() && clock::now() < end {
            std::thread::yield_now();
        }
        assert!(is_gone(), "the child {pid} still runs");
    }

    #[test]
    fn no_program_is_started_after_shutdown() {
        let running = Running::default();
        running.end();
        let stopped = run(Path::new("/bin/sleep"), &["1000"], LONG, &running);
        assert!(stopped.is_err(), "{stopped:?}");
    }
}
