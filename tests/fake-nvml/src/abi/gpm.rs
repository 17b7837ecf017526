//! GPM: metrics as the mean between two samples, of a GPU or of a MIG instance.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    NVML_GPM_SUPPORT_VERSION, nvmlDevice_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t,
    nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH as VERSION_MISMATCH,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NO_DATA as NO_DATA, nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
};

use crate::{
    call::{answer, answer_for},
    gpu::{Gpu, Readings},
    out::{get, put},
    world::World,
};

/// The shortest interval of the hardware counters; two samples that are closer have no metrics.
const CLOSEST_SECONDS: f64 = 0.1;

/// The names of the readings of NVML's metrics; a percentage, or MiB/s (`nvml.h`, `NVML_GPM_METRIC_*_PER_SEC`).
const METRICS: [(u32, &str); 21] = [
    (1, "gpm.graphics_percent"),
    (2, "gpm.sm_percent"),
    (3, "gpm.sm_occupancy_percent"),
    (4, "gpm.integer_percent"),
    (5, "gpm.tensor_percent"),
    (6, "gpm.dfma_tensor_percent"),
    (7, "gpm.hmma_tensor_percent"),
    (8, "gpm.dmma_tensor_percent"),
    (9, "gpm.imma_tensor_percent"),
    (10, "gpm.dram_bandwidth_percent"),
    (11, "gpm.fp64_percent"),
    (12, "gpm.fp32_percent"),
    (13, "gpm.fp16_percent"),
    (20, "gpm.pcie_tx_mib_per_second"),
    (21, "gpm.pcie_rx_mib_per_second"),
    (60, "gpm.nvlink_rx_mib_per_second"),
    (61, "gpm.nvlink_tx_mib_per_second"),
    (100, "gpm.c2c_tx_mib_per_second"),
    (101, "gpm.c2c_rx_mib_per_second"),
    (102, "gpm.c2c_data_tx_mib_per_second"),
    (103, "gpm.c2c_data_rx_mib_per_second"),
];

/// The target of a sample handle: the time and the source of the sample.
#[derive(Clone, Copy, Default)]
struct Sample {
    taken: Option<Taken>,
}

#[derive(Clone, Copy)]
struct Taken {
    second: f64,
    gpu: usize,
    gpu_instance: Option<u32>,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    answer("nvmlGpmSampleAlloc", |_, _| {
        if sample.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let allocated = Box::into_raw(Box::<Sample>::default());
        // SAFETY: by NVML's contract the pointer is null or points to a handle.
        unsafe { put(sample, allocated.cast()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    if !sample.is_null() {
        // SAFETY: by NVML's contract the handle comes from `nvmlGpmSampleAlloc` and is freed once. It is freed in any state of
        // the connection: the library owns the memory.
        drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    answer_for("nvmlGpmSampleGet", device, |target| {
        require_support(target.full_gpu()?)?;
        let taken = Taken {
            second: target.second,
            gpu: target.handle.gpu.into(),
            gpu_instance: None,
        };
        // SAFETY: by NVML's contract the handle is null or comes from `nvmlGpmSampleAlloc`.
        unsafe { put(sample.cast(), Sample { taken: Some(taken) }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMigSampleGet(
    device: nvmlDevice_t,
    gpu_instance: c_uint,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    answer_for("nvmlGpmMigSampleGet", device, |target| {
        let gpu = target.full_gpu()?;
        require_support(gpu)?;
        let mut instances = gpu.mig.iter();
        if !instances.any(|mig| mig.gpu_instance == gpu_instance && mig.exists(target.second)) {
            return Err(INVALID_ARGUMENT);
        }
        let taken = Taken {
            second: target.second,
            gpu: target.handle.gpu.into(),
            gpu_instance: Some(gpu_instance),
        };
        // SAFETY: by NVML's contract the handle is null or comes from `nvmlGpmSampleAlloc`.
        unsafe { put(sample.cast(), Sample { taken: Some(taken) }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    support: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    answer_for("nvmlGpmQueryDeviceSupport", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get(support) }?;
        if answer.version != NVML_GPM_SUPPORT_VERSION {
            return Err(VERSION_MISMATCH);
        }
        answer.isSupportedDevice = u32::from(require_support(target.gpu).is_ok());
        // SAFETY: as above.
        unsafe { put(support, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmQueryIfStreamingEnabled(
    device: nvmlDevice_t,
    state: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlGpmQueryIfStreamingEnabled", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(state, target.read("gpm.streaming")? as c_uint) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlGpmMetricsGet(asked: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    answer("nvmlGpmMetricsGet", |world, _| {
        if asked.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract it points to the structure, which no other thread uses during the call.
        let asked = unsafe { &mut *asked };
        if asked.version != 1 {
            return Err(VERSION_MISMATCH);
        }
        // SAFETY: by NVML's contract the handles are null or come from `nvmlGpmSampleAlloc`.
        let (first, second) = unsafe {
            (
                get::<Sample>(asked.sample1.cast())?,
                get::<Sample>(asked.sample2.cast())?,
            )
        };
        let (first, second) = (
            first.taken.ok_or(INVALID_ARGUMENT)?,
            second.taken.ok_or(INVALID_ARGUMENT)?,
        );
        let readings = readings_of_both(world, first, second)?;
        let metrics = asked
            .metrics
            .get_mut(..asked.numMetrics as usize)
            .ok_or(INVALID_ARGUMENT)?;
        let highest = readings.function("gpm.highest_number");
        let highest = highest.map_or(u32::MAX, |number| number.at(second.second) as u32);
        if metrics.iter().any(|metric| metric.metricId > highest) {
            return Err(INVALID_ARGUMENT);
        }
        for metric in metrics {
            match mean(readings, metric.metricId, first.second, second.second) {
                Ok(value) => {
                    metric.value = value;
                    metric.nvmlReturn = SUCCESS;
                }
                Err(code) => metric.nvmlReturn = code,
            }
        }
        Ok(())
    })
}

/// Returns the readings of the source of both samples; an error if they differ or the first sample is later.
fn readings_of_both(world: &World, first: Taken, second: Taken) -> Result<&Readings, nvmlReturn_t> {
    let same = first.gpu == second.gpu && first.gpu_instance == second.gpu_instance;
    if !same || first.second > second.second {
        return Err(INVALID_ARGUMENT);
    }
    let gpu = world.scenario.gpus.get(first.gpu).ok_or(INVALID_ARGUMENT)?;
    let Some(instance) = first.gpu_instance else {
        return Ok(&gpu.readings);
    };
    let mut instances = gpu.mig.iter();
    let found = instances.find(|mig| mig.gpu_instance == instance);
    found.map(|mig| &mig.readings).ok_or(INVALID_ARGUMENT)
}

fn mean(readings: &Readings, metric: u32, from: f64, until: f64) -> Result<f64, nvmlReturn_t> {
    let name = match METRICS.iter().find(|(id, _)| *id == metric) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("gpm.{metric}"),
    };
    let function = readings.function(&name).ok_or(NOT_SUPPORTED)?;
    if until - from < CLOSEST_SECONDS {
        return Err(NO_DATA);
    }
    Ok(function.mean(from, until))
}

/// Returns an error unless the GPU has the first GPM metric, itself or in an instance.
fn require_support(gpu: &Gpu) -> Result<(), nvmlReturn_t> {
    let in_instances = gpu.mig.iter().map(|mig| &mig.readings);
    let mut all = std::iter::once(&gpu.readings).chain(in_instances);
    let has = all.any(|readings| readings.function("gpm.graphics_percent").is_some());
    has.then_some(()).ok_or(NOT_SUPPORTED)
}
