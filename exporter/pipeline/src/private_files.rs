//! Files and folders that only their user can read. Queues and checkpoints hold what receivers require a token for.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Creates a folder and its parents with mode 0700. An existing folder keeps its mode.
///
/// # Errors
/// The error of the system.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a folder that nothing else uses, and sets the mode of an existing one, which an earlier version may have created.
///
/// # Errors
/// The error of the system.
pub fn create_own_folder(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    if fs::metadata(path)?.mode() & 0o077 != 0 {
        // Fails for a folder of another user, which may be used nevertheless.
        let _ = fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE));
    }
    Ok(())
}

/// Returns options that create a file with mode 0600.
pub fn file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates a file with mode 0600, or truncates an existing one.
///
/// # Errors
/// The error of the system.
pub fn create_file(path: &Path) -> io::Result<fs::File> {
    file_options().write(true).create(true).truncate(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it exists").mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_private_and_only_an_own_folder_is_changed() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (own, shared) = (root.path().join("state/queue"), root.path().join("shared"));
        create_folder(&own).expect("it is created");
        assert_eq!((mode(&own), mode(&root.path().join("state"))), (0o700, 0o700));
        create_file(&own.join("file")).expect("it is created");
        assert_eq!(mode(&own.join("file")), 0o600);
        fs::create_dir(&shared).expect("it is created");
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).expect("it is ours");
        create_folder(&shared).expect("it exists");
        assert_eq!(mode(&shared), 0o755);
        create_own_folder(&shared).expect("it exists");
        assert_eq!(mode(&shared), 0o700);
    }
}
