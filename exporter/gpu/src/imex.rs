//! The state of IMEX, which shares GPU memory between the hosts of an NVLink domain, as `nvidia-imex-ctl` reports it.
//!
//! NVML has no call for it. The formats of the output are those that DCGM parses (`dcgmlib/src/DcgmImexManager.cpp` and
//! `dcgmlib/src/tests/DcgmImexManagerTests.cpp` of NVIDIA/DCGM). A separate thread starts the program and kills it after a
//! timeout. The threads of the GPUs never wait for it.

mod program;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, Thread},
    time::Duration,
};

use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::{Attribute, AttributeKind, attribute};
use serde_json::Value;
use tokio::sync::mpsc;

use self::program::{ProgramError, Running};
use crate::driver::park_until;

/// The folders of the program, as DCGM has them. `PATH` is not searched: the agent may run as root.
const FOLDERS: [&str; 4] = [
    "/usr/bin",
    "/usr/local/bin",
    "/opt/nvidia/imex/bin",
    "/usr/local/nvidia/imex/bin",
];
const PROGRAM: &str = "nvidia-imex-ctl";
/// The output of the program without a node configuration.
const NOT_CONFIGURED: &str = "Failed to read node configuration file";
/// The longest name of a state.
const MAX_STATE_LEN: usize = 40;

/// Whether and how the state of IMEX is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImexConfig {
    /// The program.
    pub program: ImexProgram,
    /// The interval of readings.
    pub interval: Duration,
    /// The time after which the program is killed.
    pub timeout: Duration,
}

/// The program that reports the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ImexProgram {
    /// `nvidia-imex-ctl` in the folders of its packages, if it is installed.
    #[default]
    Auto,
    /// None: IMEX is not observed.
    Off,
    /// This program.
    At(PathBuf),
}

impl Default for ImexConfig {
    fn default() -> Self {
        Self {
            program: ImexProgram::Auto,
            interval: Duration::from_secs(60),
            timeout: Duration::from_secs(5),
        }
    }
}

/// One reading: values of the attributes of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImexReading {
    /// `gpu.imex.domain_state`; `None` without an answer.
    pub(crate) domain: Option<&'static str>,
    /// `gpu.imex.daemon_state`; `None` without an answer.
    pub(crate) daemon: Option<&'static str>,
    /// The reason that a state is missing; also `None` if there is no program.
    pub(crate) failure: Option<String>,
}

/// The thread that starts the program. Dropping it kills a running program; the thread is not waited for.
pub(crate) struct ImexThread {
    readings: mpsc::Receiver<ImexReading>,
    running: Arc<Running>,
    thread: Thread,
    /// The longest time from one reading to the next.
    reading_timeout: Duration,
    deadline: Instant,
}

impl ImexThread {
    /// Starts the thread; `None` if IMEX is not observed.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(config: &ImexConfig) -> io::Result<Option<Self>> {
        if config.program == ImexProgram::Off {
            return Ok(None);
        }
        let (sender, readings) = mpsc::channel(1);
        let running = Arc::<Running>::default();
        // The wait, and the timeouts of both states and some time to start the program.
        let reading_timeout = config.interval.saturating_add(config.timeout.saturating_mul(3));
        let (config, of_thread) = (config.clone(), Arc::clone(&running));
        let thread = thread::Builder::new()
            .name("imex".to_owned())
            .spawn(move || watch(&config, &of_thread, &sender))?;
        Ok(Some(Self {
            readings,
            running,
            thread: thread.thread().clone(),
            reading_timeout,
            deadline: clock::later(clock::now(), reading_timeout),
        }))
    }

    /// Returns the next reading; waits forever if IMEX is not observed. A late reading is a failure: the kernel does not end a
    /// process that waits for a device in uninterruptible sleep.
    pub(crate) async fn next(this: &mut Option<Self>) -> ImexReading {
        let Some(thread) = this else {
            return std::future::pending().await;
        };
        let failed = |why: &str| ImexReading {
            failure: Some(why.to_owned()),
            ..ImexReading::default()
        };
        let reading = match tokio::time::timeout_at(thread.deadline, thread.readings.recv()).await {
            Ok(Some(reading)) => reading,
            Ok(None) => {
                *this = None;
                return failed("the thread that reads the state of IMEX has ended; restart the agent");
            }
            Err(_) => failed("nvidia-imex-ctl was killed and has not ended"),
        };
        thread.deadline = clock::later(clock::now(), thread.reading_timeout);
        reading
    }
}

impl Drop for ImexThread {
    fn drop(&mut self) {
        self.running.end();
        self.thread.unpark();
    }
}

fn watch(config: &ImexConfig, running: &Running, sender: &mpsc::Sender<ImexReading>) {
    let mut due = clock::now();
    while !running.is_over() {
        let reading = read(config, running);
        if running.is_over() || sender.blocking_send(reading).is_err() {
            return;
        }
        due = clock::later(due, config.interval).max(clock::now());
        park_until(due, || running.is_over());
    }
}

/// Runs the program for both states. Each run has its own timeout, and a failure does not affect the other.
fn read(config: &ImexConfig, running: &Running) -> ImexReading {
    let Some(program) = find(&config.program) else {
        return ImexReading::default();
    };
    let ask = |arguments: &[&str], parse: fn(&str) -> Option<&'static str>| {
        let output = program::run(&program, arguments, config.timeout, running)?;
        if output.contains(NOT_CONFIGURED) {
            return Err(ProgramError::NotConfigured);
        }
        parse(&output).ok_or_else(|| ProgramError::Output(excerpt(&output)))
    };
    let named = |arguments: &[&str], parse| {
        ask(arguments, parse)
            .map_err(|error| format!("{} {}: {error}", program.display(), arguments.join(" ")))
    };
    let (domain, daemon) = (named(&["-N", "-j"], domain_state), named(&["-q"], daemon_state));
    ImexReading {
        domain: domain.as_ref().ok().copied(),
        daemon: daemon.as_ref().ok().copied(),
        failure: domain.err().or(daemon.err()),
    }
}

fn find(program: &ImexProgram) -> Option<PathBuf> {
    match program {
        ImexProgram::Off => None,
        ImexProgram::At(path) => Some(path.clone()),
        ImexProgram::Auto => {
            let mut paths = FOLDERS.iter().map(|folder| Path::new(folder).join(PROGRAM));
            paths.find(|path| path.is_file())
        }
    }
}

/// Returns the state of the domain, or `None` if the text is not the JSON of `nvidia-imex-ctl -N -j`. The states of nodes are
/// below `nodes`.
fn domain_state(text: &str) -> Option<&'static str> {
    let domain: Value = serde_json::from_str(text.trim()).ok()?;
    state(&attribute::GPU_IMEX_DOMAIN_STATE, domain.get("status")?.as_str()?)
}

/// Returns the state of the daemon, or `None` if the text is not the one word of `nvidia-imex-ctl -q`.
fn daemon_state(text: &str) -> Option<&'static str> {
    state(&attribute::GPU_IMEX_DAEMON_STATE, text.trim())
}

/// Returns the value of the attribute for a word of the program: `other` for one of a later version, `None` for anything else.
fn state(attribute: &'static Attribute, word: &str) -> Option<&'static str> {
    let AttributeKind::Enum(states) = attribute.kind else {
        return None;
    };
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if word.is_empty() || word.len() > MAX_STATE_LEN || !word.bytes().all(is_word) {
        return None;
    }
    let known = states.iter().find(|state| state.eq_ignore_ascii_case(word));
    Some(known.copied().unwrap_or("other"))
}

/// Returns the first characters of an output, for a message.
fn excerpt(output: &str) -> String {
    output.trim().chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imex_domain_state_is_read_from_the_top_level_status() {
        // Two of DCGM's own samples (DcgmImexManagerTests.cpp).
        let up = r#"{"nodes":{"0":{"status":"READY"}},"timestamp":"5/22/2025 19:46:40.891","status":"UP"}"#;
        assert_eq!(domain_state(up), Some("up"));
        let degraded = r#"{"nodes":{
            "3": {"status":"READY","host":"10.76.186.255",
                "connections":{"1":{"host":"10.76.183.30","status":"CONNECTED","changed":true}},
                "changed":true,"version":"580.30","hostName":""}},
            "timestamp":"5/22/2025 19:46:40.891",
            "status":"DEGRADED"}"#;
        assert_eq!(domain_state(degraded), Some("degraded"));
        assert_eq!(domain_state(r#"{"status":"down","nodes":{}}"#), Some("down"));
        assert_eq!(domain_state(r#"{"status":"PARTIALLY_UP"}"#), Some("other"));
    }

    #[tokio::test(start_paused = true)]
    async fn imex_program_that_cannot_be_killed_reports_no_state() {
        let (sender, readings) = mpsc::channel(1);
        let reading_timeout = Duration::from_secs(75);
        let mut thread = Some(ImexThread {
            readings,
            running: Arc::default(),
            thread: thread::current(),
            reading_timeout,
            deadline: clock::later(clock::now(), reading_timeout),
        });
        let up = ImexReading {
            domain: Some("up"),
            ..ImexReading::default()
        };
        sender.send(up.clone()).await.unwrap();
        assert_eq!(ImexThread::next(&mut thread).await, up);
        let began = clock::now();
        let late = ImexThread::next(&mut thread).await;
        assert_eq!((late.domain, late.daemon), (None, None));
        assert!(late.failure.is_some());
        assert_eq!(clock::now() - began, reading_timeout);
        drop(sender);
        assert!(ImexThread::next(&mut thread).await.failure.is_some());
        assert!(thread.is_none());
    }

    #[test]
    fn unrecognized_imex_output_yields_no_state() {
        for text in [
            "",
            "UP",
            r#"{"status":}"#,
            r#"{"other":"field","timestamp":"test"}"#,
            r#"{"nodes":{"0":{"status":"READY"}}}"#,
            r#"{"status":3}"#,
            r#"{"status":"not a word"}"#,
        ] {
            assert_eq!(domain_state(text), None, "{text:?}");
        }
        for text in ["", "two words", "READY\nREADY", &"A".repeat(41), "{}"] {
            assert_eq!(daemon_state(text), None, "{text:?}");
        }
    }

    #[test]
    fn imex_daemon_state_is_a_single_case_insensitive_word() {
        assert_eq!(daemon_state("  SHUTTING_DOWN  \n"), Some("shutting_down"));
        assert_eq!(daemon_state("ready"), Some("ready"));
        assert_eq!(daemon_state("INIT_GPU"), Some("init_gpu"));
        assert_eq!(daemon_state("UNKNOWN_DAEMON_STATUS"), Some("other"));
    }
}
