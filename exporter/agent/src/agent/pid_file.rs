//! The file of `--pid-file`: the process id of a running agent, for programs that send it signals.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use pulsetrain_pipeline::Problem;

use crate::failure::Failure;

/// The file of this agent, which is removed at its end.
#[derive(Debug)]
pub(super) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file, and replaces one of an earlier agent. A reader never sees half of it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn write(path: &Path) -> Result<Self, Failure> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let written = fs::write(&new, content()).and_then(|()| fs::rename(&new, path));
        match written {
            Ok(()) => Ok(Self(path.to_owned())),
            Err(error) => Err(Failure::Failed(problem(path, &error))),
        }
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // The next agent may have written its own id already.
        if fs::read_to_string(&self.0).is_ok_and(|written| written == content()) {
            // A file that stays is replaced by the next agent.
            let _ = fs::remove_file(&self.0);
        }
    }
}

fn content() -> String {
    format!("{}\n", process::id())
}

fn problem(path: &Path, error: &io::Error) -> Problem {
    Problem::new(format!("--pid-file: cannot write {}: {error}", path.display()))
        .with_remedy("name a file in a folder that this user can write")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_of_the_next_agent_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.pid");
        fs::write(&path, "1\n").unwrap();
        let file = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content());
        fs::write(&path, "2\n").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
        drop(PidFile::write(&path).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
