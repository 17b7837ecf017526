//! A Unix socket in the file system: made with its permissions, and removed at the end.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
};

/// Removes the file of a socket when it is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    inode: u64,
}

/// Listens at `path`. Clients never see the socket with other permissions than `mode`. A socket that nobody listens on
/// any more is replaced.
///
/// # Errors
/// A path that is another file, or a socket that another program listens on.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the path is a file that is not a socket",
            ));
        }
        // Connecting to a socket without a listener is refused at once.
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(io::Error::new(
                io::ErrorKind::AddrInUse,
                "another program listens on it",
            ));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(format!(".{}", std::process::id()));
    let unfinished = PathBuf::from(unfinished);
    let _ = fs::remove_file(&unfinished);
    let listener = UnixListener::bind(&unfinished)?;
    let finish = || {
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(mode))?;
        fs::rename(&unfinished, path)?;
        fs::symlink_metadata(path)
    };
    let file = finish().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })?;
    let file = SocketFile {
        path: path.to_owned(),
        inode: file.ino(),
    };
    Ok((listener, file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may listen there by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_has_its_permissions_and_goes_away_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("otlp.sock");
        let (listener, file) = bind(&path, 0o600).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(UnixStream::connect(&path).is_ok());
        let again = bind(&path, 0o600).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        drop((listener, file));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_socket_that_was_left_is_replaced_and_another_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("otlp.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (_listener, file) = bind(&path, 0o660).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(file);
        fs::write(&path, "notes").unwrap();
        assert!(bind(&path, 0o660).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "notes");
    }
}
