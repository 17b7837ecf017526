//! Writing answers through the pointers that a caller gave.

use std::ffi::{CStr, c_char, c_uint};

use nvml_wrapper_sys::bindings::{
    nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH as VERSION_MISMATCH,
    nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as INSUFFICIENT_SIZE,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
};

use crate::call::Reply;

/// Writes a value.
///
/// # Safety
///
/// `out` is null or points to a place for one `T`.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Reply {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, and the caller vouches for the rest.
    unsafe { out.write(value) };
    Ok(())
}

/// Reads a structure that begins with its version, where that is the one that the call knows.
///
/// # Safety
///
/// `from` is null or points to one `T`, whose first member is a `u32`.
pub(crate) unsafe fn get_versioned<T: Copy>(from: *const T, number: u32) -> Result<T, u32> {
    // SAFETY: as the caller vouches.
    if unsafe { get(from.cast::<u32>()) }? != size_of::<T>() as u32 | number << 24 {
        return Err(VERSION_MISMATCH);
    }
    // SAFETY: as the caller vouches.
    unsafe { get(from) }
}

/// Reads what a caller filled in.
///
/// # Safety
///
/// `from` is null or points to one `T`.
pub(crate) unsafe fn get<T: Copy>(from: *const T) -> Result<T, u32> {
    if from.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, and the caller vouches for the rest.
    Ok(unsafe { from.read() })
}

/// Writes a text and the zero at its end.
///
/// # Safety
///
/// `out` is null or points to a place for `length` characters.
pub(crate) unsafe fn put_text(out: *mut c_char, length: c_uint, text: &str) -> Reply {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the text and its zero fit into the length that the caller vouches for.
    unsafe {
        out.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes a list in NVML's manner: `count` is how many fit before the call and how many there are after it.
///
/// # Safety
///
/// `count` is null or points to one number, and `out` is null or points to that many places.
pub(crate) unsafe fn put_list<T>(out: *mut T, count: *mut c_uint, items: &[T]) -> Reply
where
    T: Copy,
{
    // SAFETY: as the caller vouches.
    let room = unsafe { get(count) }?;
    // SAFETY: as the caller vouches.
    unsafe { put(count, items.len() as c_uint) }?;
    if items.is_empty() {
        return Ok(());
    }
    if (room as usize) < items.len() || out.is_null() {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for all of them, as the caller vouches.
    unsafe { out.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(())
}

/// A text that a caller gave.
///
/// # Safety
///
/// `text` is null or points to characters that end in a zero.
pub(crate) unsafe fn get_text(text: *const c_char) -> Result<String, u32> {
    if text.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, and the caller vouches for the rest.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(text.to_string_lossy().into_owned())
}

/// A text in an array of characters, cut where it does not fit.
pub(crate) fn characters<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (place, byte) in array.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    array
}
