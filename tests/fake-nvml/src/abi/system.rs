//! Initialization, shutdown, the number of GPUs, and the versions of the driver.

use std::{
    ffi::{c_char, c_int, c_uint},
    fs::File,
};

use nvml_wrapper_sys::bindings::{
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlReturn_enum_NVML_ERROR_UNINITIALIZED as UNINITIALIZED, nvmlReturn_t,
};

use crate::{
    call::{ERRORS, Reply, answer, answer_unconnected},
    out::{put, put_text},
    place::in_own_folder,
    world::World,
};

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    answer_unconnected("nvmlInit_v2", connect)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    answer_unconnected("nvmlInitWithFlags", connect)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    answer_unconnected("nvmlShutdown", |world, _| {
        let mut connection = world.connection();
        connection.inits = connection.inits.checked_sub(1).ok_or(UNINITIALIZED)?;
        if connection.inits == 0 {
            connection.device = None;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    let known = ERRORS.iter().find(|(_, code, _)| *code == result);
    known
        .map_or(
            if result == 0 {
                c"The operation was successful"
            } else {
                c"Unknown error code"
            },
            |(_, _, text)| text,
        )
        .as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    answer("nvmlDeviceGetCount_v2", |world, second| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(count, world.present(second).len() as c_uint) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer("nvmlSystemGetDriverVersion", |world, _| {
        // SAFETY: by NVML's contract the pointer is null or has room for that many characters.
        unsafe { put_text(version, length, &world.scenario.driver.version) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer("nvmlSystemGetNVMLVersion", |world, _| {
        // SAFETY: by NVML's contract the pointer is null or has room for that many characters.
        unsafe { put_text(version, length, &world.scenario.driver.nvml) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> nvmlReturn_t {
    answer("nvmlSystemGetCudaDriverVersion_v2", |world, _| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(version, world.scenario.driver.cuda) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetProcessName(
    pid: c_uint,
    name: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    answer("nvmlSystemGetProcessName", |_, _| {
        let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|_| NOT_FOUND)?;
        // SAFETY: by NVML's contract the pointer is null or has room for that many characters.
        unsafe { put_text(name, length, command.trim_end()) }
    })
}

fn connect(world: &World, second: f64) -> Reply {
    let mut connection = world.connection();
    if connection.inits == 0 {
        connection.generation += 1;
        connection.since = second;
        // Without such a file, no test checks which processes hold the GPU.
        connection.device = File::open(in_own_folder("device")).ok();
    }
    connection.inits += 1;
    Ok(())
}
