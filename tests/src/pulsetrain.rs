//! The `pulsetrain` binary, run as a user runs it.

use std::{
    env,
    ffi::OsStr,
    fs::{self, Permissions},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{self, Command, Output, Stdio},
    sync::{
        LazyLock, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::{Answer, FakeEndpoint, Items, cargo_build::cargo_build, workspace_path};

/// A `pulsetrain import` that has not been started.
#[derive(Debug)]
pub struct Import(Command);

impl Import {
    /// Creates an import of `path` that prints a summary in JSON, without the `OTEL_*` variables of the caller.
    pub fn new(path: impl AsRef<OsStr>) -> Self {
        Self::for_people(path).arg("--json")
    }

    /// Creates an import of `path` that prints a summary as text.
    pub fn for_people(path: impl AsRef<OsStr>) -> Self {
        let mut command = command(["import"]);
        command.arg(path);
        Self(command)
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.0.arg(arg);
        self
    }

    /// Adds a target.
    pub fn to(self, target: impl AsRef<OsStr>) -> Self {
        self.arg("--to").arg(target)
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs the import until it exits.
    pub fn run(mut self) -> Finished {
        Finished::run(&mut self.0)
    }

    /// Runs the import, which must succeed, and returns its items.
    #[track_caller]
    pub fn items(self) -> Items {
        Items::parse(&self.to("-").run().expect_code(0).stdout)
    }

    /// Runs the import until it exits, with `input` on its standard input, which is closed after it.
    pub fn run_with_input(mut self, input: &[u8]) -> Finished {
        Finished::with_input(&mut self.0, input)
    }

    /// Returns the command, for a test that needs its running process.
    pub fn into_command(self) -> Command {
        self.0
    }
}

/// Runs `pulsetrain convert INPUTS -o OUTPUT ARGUMENTS` until it exits, with a summary in JSON.
pub fn convert(inputs: &[impl AsRef<Path>], output: &Path, arguments: &[&str]) -> Finished {
    let mut command = command(["convert", "--json"]);
    command.args(inputs.iter().map(AsRef::as_ref));
    command.arg("-o").arg(output).args(arguments);
    Finished::run(&mut command)
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    /// Reads the output of a process that has exited.
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }

    /// Runs a program until it exits.
    pub fn run(command: &mut Command) -> Self {
        Self::new(command.output().expect("the program can be started"))
    }

    /// As [`run`](Self::run), with `input` on standard input, which is closed after it.
    pub fn with_input(command: &mut Command, input: &[u8]) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let mut stdin = child.stdin.take().expect("invariant: standard input is piped");
        let output = thread::scope(|scope| {
            // A program that exits before the end of its input breaks the pipe; its exit code shows that.
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().expect("a child can be waited for")
        });
        Self::new(output)
    }

    /// Panics with the complete output if the exit code differs, or if a panic was printed.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "standard error was:\n{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Panics if standard error lacks one of these words.
    #[track_caller]
    pub fn expect_words(&self, words: &[&str]) {
        for word in words {
            assert!(
                self.stderr.contains(word),
                "{word:?} is missing:\n{}",
                self.stderr
            );
        }
    }

    /// Returns the sum of the counts of the summary under `field`, which are by reason: `skipped` or `dropped`.
    #[track_caller]
    pub fn total(&self, field: &str) -> u64 {
        let summary = self.summary();
        let by_reason = summary[field]
            .as_object()
            .unwrap_or_else(|| panic!("{field} is not by reason: {summary}"));
        by_reason.values().filter_map(Value::as_u64).sum()
    }

    /// Returns the JSON summary, which is the last line of standard error.
    #[track_caller]
    pub fn summary(&self) -> Value {
        let last = self.stderr.lines().last().expect("an import ends with a summary");
        serde_json::from_str(last).unwrap_or_else(|error| panic!("no summary, {error}:\n{}", self.stderr))
    }
}

/// Imports a log: spans go to the store at `traces`, points and log records to an endpoint that accepts all. Returns the items
/// of the log.
pub fn send_traces(log: &Path, traces: &str) -> Items {
    let others = FakeEndpoint::start([], Answer::Accept);
    Import::new(log)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", others.url())
        .env(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            format!("{traces}/v1/traces"),
        )
        .run()
        .expect_code(0);
    Import::new(log).items()
}

/// Runs `pulsetrain semconv` with these arguments.
pub fn semconv<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Finished {
    Finished::run(command(["semconv"]).args(args))
}

/// Creates a `pulsetrain` command without standard input and without variables that configure OpenTelemetry. It has a state
/// folder of its own: what one command cannot deliver must not reach the endpoint of a later test at the same port.
pub fn command<const N: usize>(args: [&str; N]) -> Command {
    let mut command = Command::new(program());
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command.env_remove("STATE_DIRECTORY");
    command.env("XDG_STATE_HOME", new_state_folder());
    command
}

/// Returns the path of a new folder. It is below a folder of this process, which a later process removes.
fn new_state_folder() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = env::temp_dir().join("pulsetrain-tests-state");
        for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
            let is_running = Path::new("/proc").join(entry.file_name()).exists();
            if !is_running {
                // Another process may remove the folder at the same time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let root = all.join(process::id().to_string());
        fs::create_dir_all(&root).expect("a temporary folder can be made");
        // Some commands run as another user.
        for folder in [&all, &root] {
            let _ = fs::set_permissions(folder, Permissions::from_mode(0o777));
        }
        root
    });
    ROOT.join(NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}

/// Returns the command with default signal handlers and without standard input: tests that run in the background inherit an
/// ignored SIGINT, and so would their children.
pub fn with_default_signals(command: &Command) -> Command {
    let mut with_defaults = Command::new("env");
    with_defaults.arg("--default-signal");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with_defaults.env(name, value),
            None => with_defaults.env_remove(name),
        };
    }
    with_defaults
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    with_defaults
}

/// Returns the binary as a user gets it, which the first call builds. Measurements use an optimized build through
/// `PULSETRAIN=target/release/pulsetrain`.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| env::var_os("PULSETRAIN").map_or_else(build, workspace_path))
}

fn build() -> PathBuf {
    cargo_build(
        &["--package", "pulsetrain-agent", "--bin", "pulsetrain"],
        |message| message["executable"].as_str(),
    )
}
