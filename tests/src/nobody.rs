//! A program that is run by a user who owns nothing: root may read everything, whatever the permissions.

use std::{
    fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::Path,
    process::Command,
};

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// The same command, run as nobody where we are root: a copy of the program in `folder`, which everybody can enter.
pub fn as_nobody(command: &Command, folder: &Path) -> Command {
    let program = folder.join("pulsetrain");
    // By a process of its own: while this one has the copy open for writing, no thread of it could start the copy.
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
