//! Runs a program as an unprivileged user, because root may read every file.

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::Command,
};

/// The user id of `nobody`.
const NOBODY: u32 = 65_534;

/// Returns the command as the user `nobody`, if this process is root. It runs a copy of the program in `folder`, which every user
/// may enter.
pub fn as_unprivileged(command: &Command, folder: &Path) -> Command {
    let program = folder.join("pulsetrain");
    // `cp` writes the copy: a file that this process has open for writing cannot be executed (ETXTBSY).
    let copied = Command::new("cp")
        .arg(command.get_program())
        .arg(&program)
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "the program can be copied"
    );
    let mut copy = Command::new(program);
    copy.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => copy.env(name, value),
            None => copy.env_remove(name),
        };
    }
    if fs::metadata("/proc/self").expect("Linux has /proc").uid() == 0 {
        copy.uid(NOBODY);
    }
    copy
}
