//! A small disk for one test, which the test can fill. It requires only the right to create a namespace.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

/// A small disk, which is unmounted when it is dropped.
pub struct SmallDisk {
    path: PathBuf,
    holder: Child,
    /// The pipe that ends the holder when it is closed.
    stdin: Option<ChildStdin>,
}

impl SmallDisk {
    /// Mounts a disk of this size, as an option of `mount`, that is visible only at its [`path`](Self::path). Returns `None`,
    /// and prints a message, if mounting is not permitted.
    pub fn mount(folder: &Path, size: &str) -> Option<Self> {
        let script = r#"mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec cat"#;
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--mount", "sh", "-c", script, "sh", size])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = command.spawn().expect("unshare is installed");
        let stdin = holder.stdin.take();
        let mut printed = String::new();
        let output = holder.stdout.take().expect("the output is a pipe");
        let _ = BufReader::new(output).read_line(&mut printed);
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

    /// Returns the path of the disk.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk completely.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a file can be made");
        while filler.write_all(&[0; 4096]).is_ok() {}
    }

    /// Frees the space that [`fill`](Self::fill) used.
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
        // If the holder has already exited, there is nothing to wait for.
        let _ = self.holder.wait();
    }
}
