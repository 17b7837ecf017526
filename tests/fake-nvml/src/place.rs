//! Where this library finds its files: next to itself, so that each copy of it is a driver of its own.
//!
//! A dynamic loader gives one instance to all who open the same file; a test that wants its own driver copies the file
//! and opens the copy. A variable of the environment overrides, for a program that somebody else starts.

use std::{env, ffi::CStr, mem::MaybeUninit, os::unix::ffi::OsStrExt, path::PathBuf};

/// The file `name` next to this library, or the one that `variable` names.
pub(crate) fn beside_the_library(name: &str, variable: &str) -> PathBuf {
    if let Some(path) = env::var_os(variable) {
        return path.into();
    }
    in_own_folder(name)
}

/// The file `name` in the folder of this library.
pub(crate) fn in_own_folder(name: &str) -> PathBuf {
    let mut library = own_path().unwrap_or_default();
    library.set_file_name(name);
    library
}

fn own_path() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is one of this library's own functions and `info` is a place for the answer.
    let found = unsafe { libc::dladdr(own_path as *const libc::c_void, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: every field is a pointer, for which the zeros that it began with are a value, and dladdr has filled it.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gives a file's name that ends in a zero and lives as long as the library is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
}
