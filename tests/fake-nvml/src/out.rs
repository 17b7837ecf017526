//! Writes results through the pointers of a caller.

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
/// `out` is null or points to memory for one `T`.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Reply {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    unsafe { out.write(value) };
    Ok(())
}

/// Reads a structure that begins with its version; returns an error if the version is not the expected one.
///
/// # Safety
///
/// `from` is null or points to one `T`, whose first member is a `u32`.
pub(crate) unsafe fn get_versioned<T: Copy>(from: *const T, number: u32) -> Result<T, u32> {
    // SAFETY: guaranteed by the caller.
    if unsafe { get(from.cast::<u32>()) }? != size_of::<T>() as u32 | number << 24 {
        return Err(VERSION_MISMATCH);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { get(from) }
}

/// Reads a structure that the caller has filled in.
///
/// # Safety
///
/// `from` is null or points to one `T`.
pub(crate) unsafe fn get<T: Copy>(from: *const T) -> Result<T, u32> {
    if from.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    Ok(unsafe { from.read() })
}

/// Writes a string with a terminating zero.
///
/// # Safety
///
/// `out` is null or points to memory for `length` characters.
pub(crate) unsafe fn put_text(out: *mut c_char, length: c_uint, text: &str) -> Reply {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: the string and its zero fit into the length that the caller guarantees.
    unsafe {
        out.cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// Writes a list as NVML does: `count` is the capacity before the call and the number of items after it.
///
/// # Safety
///
/// `count` is null or points to one number, and `out` is null or points to memory for that number of items.
pub(crate) unsafe fn put_list<T>(out: *mut T, count: *mut c_uint, items: &[T]) -> Reply
where
    T: Copy,
{
    // SAFETY: guaranteed by the caller.
    let room = unsafe { get(count) }?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(count, items.len() as c_uint) }?;
    if items.is_empty() {
        return Ok(());
    }
    if (room as usize) < items.len() || out.is_null() {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is capacity for all items; guaranteed by the caller.
    unsafe { out.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(())
}

/// Returns a string from a caller.
///
/// # Safety
///
/// `text` is null or points to a zero-terminated string.
pub(crate) unsafe fn get_text(text: *const c_char) -> Result<String, u32> {
    if text.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the pointer is not null, and the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(text) };
    Ok(text.to_string_lossy().into_owned())
}

/// Returns a string as an array of characters, truncated if it is too long.
pub(crate) fn characters<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (place, byte) in array.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    array
}
