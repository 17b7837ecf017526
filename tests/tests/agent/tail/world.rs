//! A folder with logs, a follower of them, and the delivered items.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Folder, Import, Items, Process, wait_until};

pub(crate) struct World {
    folder: Folder,
    input: PathBuf,
    state: PathBuf,
    arguments: Vec<String>,
}

impl World {
    /// Creates a world whose follower reads `input`, which is a path or a pattern in its folder.
    pub(crate) fn new(input: &str) -> Self {
        let folder = Folder::new();
        Self {
            input: folder.path(input),
            state: folder.path("state"),
            folder,
            arguments: Vec::new(),
        }
    }

    /// Adds an argument of the follower.
    pub(crate) fn with(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Sets another folder for the checkpoints of the follower.
    pub(crate) fn with_state(mut self, folder: &Path) -> Self {
        self.state = folder.to_owned();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Returns the path of the output.
    pub(crate) fn out(&self) -> PathBuf {
        self.path("out.jsonl")
    }

    /// Returns the path of the checkpoint file.
    pub(crate) fn positions(&self) -> PathBuf {
        self.state.join("positions.json")
    }

    /// Starts the follower, with checkpoints that survive it.
    pub(crate) fn follow(&self) -> Process {
        self.follow_to(&self.out().display().to_string())
    }

    pub(crate) fn follow_to(&self, target: &str) -> Process {
        Process::start("pulsetrain", &mut self.command_to(target))
    }

    /// Returns the command of the follower.
    pub(crate) fn follow_command(&self) -> Command {
        self.command_to(&self.out().display().to_string())
    }

    fn command_to(&self, target: &str) -> Command {
        let import = Import::new(&self.input)
            .arg("--follow")
            .arg("--state")
            .arg(&self.state)
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
            .to(target);
        self.arguments.iter().fold(import, Import::arg).into_command()
    }

    /// Returns the items delivered so far, without [`ends`](Self::ends) and without an incomplete last line.
    pub(crate) fn delivered(&self) -> Items {
        Items::read_complete_lines(&self.out())
            .without_hosts()
            .divide_ends()
            .1
    }

    /// Returns the ends of series delivered so far; an import of finished logs has none.
    pub(crate) fn ends(&self) -> Items {
        Items::read_complete_lines(&self.out())
            .without_hosts()
            .divide_ends()
            .0
    }

    /// Waits until the expected number of items is delivered, stops the follower, and compares.
    #[track_caller]
    pub(crate) fn expect_delivered(&self, follower: Process, expected: &Items) {
        wait_until("everything is delivered", || {
            self.delivered().len() >= expected.len()
        });
        let status = follower.stop();
        assert!(status.success(), "{status}");
        self.delivered().assert_same(expected);
    }
}

/// Returns the items of an import of each of the finished logs.
pub(crate) fn imported<'a>(logs: impl IntoIterator<Item = &'a Path>, arguments: &[&str]) -> Items {
    imported_with(logs, arguments, &[0])
}

/// As [`imported`], for logs that may be truncated.
pub(crate) fn imported_so_far<'a>(logs: impl IntoIterator<Item = &'a Path>, arguments: &[&str]) -> Items {
    imported_with(logs, arguments, &[0, 1])
}

fn imported_with<'a>(logs: impl IntoIterator<Item = &'a Path>, arguments: &[&str], codes: &[i32]) -> Items {
    let text = logs.into_iter().map(|log| {
        let import = arguments.iter().fold(Import::new(log), Import::arg);
        let finished = import.to("-").run();
        assert!(
            finished.code.is_some_and(|code| codes.contains(&code)),
            "{finished:?}"
        );
        finished.stdout
    });
    Items::parse(&text.collect::<String>())
}
