//! The paths of this library's files: its own folder, so that each copy of the library is a separate driver.
//!
//! A dynamic loader returns the same instance for the same file; a test that needs its own driver copies the file and loads the
//! copy. An environment variable overrides the path, for a program that the test does not start itself.

use std::{env, ffi::CStr, mem::MaybeUninit, os::unix::ffi::OsStrExt, path::PathBuf};

/// Returns the path of the file `name` in the folder of this library, or the one that `variable` names.
pub(crate) fn path_next_to_library(name: &str, variable: &str) -> PathBuf {
    if let Some(path) = env::var_os(variable) {
        return path.into();
    }
    in_own_folder(name)
}

/// Returns the path of the file `name` in the folder of this library.
pub(crate) fn in_own_folder(name: &str) -> PathBuf {
    let mut library = own_path().unwrap_or_default();
    library.set_file_name(name);
    library
}

fn own_path() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is one of this library's own functions and `info` points to memory for a `Dl_info`.
    let found = unsafe { libc::dladdr(own_path as *const libc::c_void, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: every field is a pointer, for which zero is valid, and dladdr has filled them.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr returns a zero-terminated file name that lives as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
