//! Files that are generated and checked in.

use std::{fs, io, path::Path};

/// A generated file: its path below `grafana` and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Path below `grafana`, with slashes.
    pub path: String,
    /// The complete text.
    pub text: String,
}

/// Writes the files below `folder`, except those that are already up to date.
pub fn write(folder: &Path, files: &[GeneratedFile]) -> io::Result<()> {
    for file in files {
        let path = folder.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &file.text)?;
    }
    Ok(())
}

/// Returns the message for a stale path, with the command that writes it.
pub fn out_of_date(path: &str) -> String {
    format!("grafana/{path} is out of date; write it with `cargo run -p pulsetrain-grafana`")
}

/// Returns the paths of the files that are missing below `folder` or have another content.
pub fn stale(folder: &Path, files: &[GeneratedFile]) -> io::Result<Vec<String>> {
    let mut stale = Vec::new();
    for file in files {
        match fs::read_to_string(folder.join(&file.path)) {
            Ok(text) if text == file.text => {}
            Ok(_) => stale.push(file.path.clone()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => stale.push(file.path.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(stale)
}
