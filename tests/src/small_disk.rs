//! A small disk of a test's own, which the test fills. It needs no rights but those of a namespace.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

/// A small disk; gone when it is dropped.
pub struct SmallDisk {
    path: PathBuf,
    holder: Child,
    /// Closed, it ends the holder.
    stdin: Option<ChildStdin>,
}

impl SmallDisk {
    /// A disk of this size, as `mount` has it, that is visible at its [`path`](Self::path) only;
    /// nothing, and a word of it, where that is not allowed.
    pub fn mount(folder: &Path, size: &str) -> Option<Self> {
        let script = r#"mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat"#;
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c", script, "sh", size])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = command.spawn().ok()?;
        let stdin = holder.stdin.take();
        let mut printed = String::new();
        let _ = BufReader::new(holder.stdout.take()?).read_line(&mut printed);
        let seen = format!("/proc/{}/root", holder.id());
        let disk = Self {
            path: Path::new(&seen).join(folder.strip_prefix("/").unwrap_or(folder)),
            holder,
            stdin,
        };
        if printed == "mounted\n" {
            return Some(disk);
        }
        writeln!(
            io::stderr(),
            "SKIPPED: right to mount not found (unshare --map-root-user --mount)"
        )
        .expect("standard error can be written");
        None
    }

    /// The folder that is the disk.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves no room on the disk.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a file can be made");
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    /// Gives back what was taken by [`fill`](Self::fill).
    pub fn make_room(&self) {
        fs::remove_file(self.filler()).expect("the file is ours");
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // A holder that is gone already leaves nothing to wait for.
        let _ = self.holder.wait();
    }
}
