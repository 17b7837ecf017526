//! A Unix socket in the file system: created with its permissions, and removed on drop.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
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

/// A folder that only this user can enter, until it is dropped.
struct PrivateFolder(PathBuf);

/// Listens at `path`. The socket is bound in a private folder, gets the permissions `mode`, and is then moved to `path`,
/// so that nobody can connect before the permissions are set. A stale socket without a listener is replaced.
///
/// # Errors
/// Returns an error if the path is a file of another type, or a socket that another program listens on.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the path is a file that is not a socket",
            ));
        }
        // A connection to a socket without a listener is refused at once.
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
    let private = PrivateFolder::create(path.parent().unwrap_or(Path::new("/")))?;
    let unfinished = private.0.join("s");
    let listener = UnixListener::bind(&unfinished)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(mode))?;
    fs::rename(&unfinished, path)?;
    let file = SocketFile {
        path: path.to_owned(),
        inode: fs::symlink_metadata(path)?.ino(),
    };
    Ok((listener, file))
}

impl PrivateFolder {
    /// Creates a folder in `parent`. An existing folder may belong to another user, and is not used.
    fn create(parent: &Path) -> io::Result<Self> {
        let mut attempts = 0;
        loop {
            let path = parent.join(format!(".{}-{attempts}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 100 => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // The folder still holds the socket only if the socket could not be moved.
        let _ = fs::remove_file(self.0.join("s"));
        let _ = fs::remove_dir(&self.0);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another server may listen at the path by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use rustix::fs::inotify;

    use super::*;

    #[test]
    fn socket_file_has_its_permissions_and_is_removed_with_its_listener() {
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
    fn socket_is_moved_into_its_folder_after_its_permissions_are_set() {
        let folder = tempfile::tempdir().unwrap();
        let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
        let events = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&watch, folder.path(), events).unwrap();
        let _socket = bind(&folder.path().join("otlp.sock"), 0o600).unwrap();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        let (mut made, mut moved) = (Vec::new(), Vec::new());
        while let Ok(event) = reader.next() {
            let name = event.file_name().unwrap().to_str().unwrap().to_owned();
            let is_folder = event.events().contains(inotify::ReadFlags::ISDIR);
            if event.events().contains(inotify::ReadFlags::MOVED_TO) {
                moved.push(name);
            } else {
                made.push((name, is_folder));
            }
        }
        assert_eq!(moved, ["otlp.sock"]);
        assert!(made.iter().all(|(_, is_folder)| *is_folder), "{made:?}");
    }

    #[test]
    fn temporary_folder_of_a_new_socket_is_private_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateFolder::create(folder.path()).unwrap();
        let other = PrivateFolder::create(folder.path()).unwrap();
        assert_ne!(private.0, other.0, "a folder that is there is not used");
        assert_eq!(
            fs::metadata(&private.0).unwrap().permissions().mode() & 0o777,
            0o700
        );
        drop((private, other));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn stale_socket_is_replaced_and_a_regular_file_is_kept() {
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
