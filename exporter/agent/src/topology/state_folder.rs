//! The state folder: checkpoints, journals and disk queues, which survive a restart.

use std::path::{Path, PathBuf};

use pulsetrain_pipeline::Problem;
use pulsetrain_tail::{Checkpointer, TailError};
use rustix::fs::{Access, access};

use crate::{
    config::{Config, DiskQueueSetting, SinkConfig},
    failure::Failure,
};

/// The folder of a service whose environment names none.
const OF_SERVICE: &str = "/var/lib/pulsetrain";

/// The remedy for a missing or unusable folder.
const NAME_IT: &str =
    "set state_folder to a folder that this user can write (under systemd: StateDirectory=pulsetrain)";

/// Returns the state folder of the configuration unless it is empty, or else the first that the environment names:
/// `STATE_DIRECTORY` of systemd, `XDG_STATE_HOME`, `HOME`; or else `/var/lib/pulsetrain` if this user can write it. `None` without one.
pub(crate) fn state_folder(config: &Config) -> Option<PathBuf> {
    let configured = config.state_folder.as_ref();
    configured
        .filter(|folder| !folder.value.is_empty())
        .map(|folder| PathBuf::from(&folder.value))
        .or_else(|| from_environment(super::variable))
        .or_else(|| is_writable(Path::new(OF_SERVICE)).then(|| OF_SERVICE.into()))
}

/// Returns the state folder that the environment names. An empty home and `/` do not count.
fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    // systemd separates several folders by colons.
    let of_systemd = variable("STATE_DIRECTORY")
        .and_then(|folders| folders.split(':').next().map(PathBuf::from))
        .filter(|path| path.is_absolute());
    let of_user = || {
        let home = || absolute("HOME").filter(|home| home != Path::new("/"));
        absolute("XDG_STATE_HOME")
            .or_else(|| home().map(|home| home.join(".local/state")))
            .map(|folder| folder.join("pulsetrain"))
    };
    of_systemd.or_else(of_user)
}

/// Returns whether a folder can be written, or created in its parent.
fn is_writable(folder: &Path) -> bool {
    let existing = if folder.exists() {
        Some(folder)
    } else {
        folder.parent()
    };
    existing
        .is_some_and(|folder| folder.is_dir() && access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}

/// Opens the checkpoints in the state folder, or in memory without one.
///
/// # Errors
/// Returns an error if the folder cannot be used, or another agent uses it.
pub(crate) fn checkpointer(config: &Config) -> Result<Checkpointer, Failure> {
    match state_folder(config) {
        Some(folder) => Checkpointer::open(&folder).map_err(|error| unusable(&error)),
        None => Ok(Checkpointer::in_memory()),
    }
}

/// Returns the error of a state folder, with the key that names another one.
fn unusable(error: &TailError) -> Failure {
    let problem = error.problem();
    Failure::Failed(match error {
        TailError::Checkpoints { .. } => problem.with_remedy(format!(
            "make the folder and its files readable and writable, free disk space, or {NAME_IT}"
        )),
        _ => problem,
    })
}

/// Returns the problem of an agent without a state folder.
pub(crate) fn missing() -> Problem {
    Problem::new(
        "there is no state folder: STATE_DIRECTORY, XDG_STATE_HOME and HOME are not set, and /var/lib/pulsetrain cannot be \
         written. Checkpoints and disk queues are in memory, and a restart loses them",
    )
    .with_remedy(NAME_IT)
}

/// Rejects a required sink whose disk queue has no folder.
///
/// # Errors
/// Returns an error without a state folder, if such a sink exists.
pub(crate) fn check(config: &Config) -> Result<(), Failure> {
    if state_folder(config).is_some() {
        return Ok(());
    }
    let needs_folder = |sink: &SinkConfig| {
        matches!(sink, SinkConfig::Otlp(otlp) if matches!(&otlp.disk_queue, DiskQueueSetting::On(queue) if queue.folder.is_none()))
            && sink.is_required()
    };
    match config.sinks.iter().find(|(_, sink)| needs_folder(sink)) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::Failed(
            missing()
                .within(format!("the disk queue of the sink {name}"))
                .with_remedy(format!(
                    "{NAME_IT}, or set disk_queue: off to keep its data in memory"
                )),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_folder_is_that_of_systemd_then_that_of_the_user() {
        let folder = |variables: &[(&str, &str)]| {
            let found = from_environment(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            found.map(|path| path.display().to_string())
        };
        let all = [
            ("STATE_DIRECTORY", "/var/lib/a:/var/lib/b"),
            ("XDG_STATE_HOME", "/x"),
            ("HOME", "/home/u"),
        ];
        assert_eq!(folder(&all).as_deref(), Some("/var/lib/a"));
        assert_eq!(folder(&all[1..]).as_deref(), Some("/x/pulsetrain"));
        assert_eq!(
            folder(&all[2..]).as_deref(),
            Some("/home/u/.local/state/pulsetrain")
        );
        let relative = [
            ("STATE_DIRECTORY", ""),
            ("XDG_STATE_HOME", "rel"),
            ("HOME", "/home/u"),
        ];
        assert_eq!(
            folder(&relative).as_deref(),
            Some("/home/u/.local/state/pulsetrain")
        );
        for home in ["", "/", "relative"] {
            assert_eq!(folder(&[("HOME", home)]), None, "{home:?}");
        }
        assert_eq!(folder(&[]), None);
    }
}
