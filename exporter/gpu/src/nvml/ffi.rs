//! Calls of NVML that its wrapper does not have, and the only unsafe code of the GPUs.
//!
//! Every call gets a live handle (a [`Device`] cannot outlive the [`Nvml`] that it came from) and a pointer to a value of
//! the type that `nvml.h` names, which lives until the call returns.
#![allow(unsafe_code, reason = "NVML is a C library")]

use std::mem;

use nvml_wrapper::{
    Device, EventSet, Nvml,
    enum_wrappers::device::TemperatureSensor,
    error::{NvmlError, nvml_sym, nvml_try},
    gpm::GpmSample,
};
use nvml_wrapper_sys::bindings as c;

/// A field to query and, after the call, its answer.
pub(crate) type FieldCell = c::nvmlFieldValue_t;

/// Returns the version field of an NVML structure: its size, with the version number in the highest byte.
const fn version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}

/// Calls a function that fills one value, which `begin` prepares. Evaluates to `Err` for a missing function, so that the caller can try
/// an older one.
macro_rules! ask {
    ($device:expr, $function:ident, $begin:expr $(, $argument:expr)*) => {{
        let device = $device;
        let mut value = $begin;
        let function = nvml_sym(device.nvml().lib().$function.as_ref());
        // SAFETY: see the header of this file; other arguments are plain numbers.
        let called = function.and_then(|function| nvml_try(unsafe { function(device.handle() $(, $argument)*, &mut value) }));
        called.map(|()| value)
    }};
}

/// Returns the cell of a field to query.
pub(crate) fn field(id: u32, scope: u32) -> FieldCell {
    FieldCell {
        fieldId: id,
        scopeId: scope,
        timestamp: 0,
        latencyUsec: 0,
        valueType: 0,
        nvmlReturn: 0,
        value: c::nvmlValue_t { ullVal: 0 },
    }
}

/// Queries all `fields` in one call; each cell then has its own answer.
pub(crate) fn field_values(device: &Device<'_>, fields: &mut [FieldCell]) -> Result<(), NvmlError> {
    let function = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    // SAFETY: see the header of this file; the count is that of the slice.
    nvml_try(unsafe { function(device.handle(), fields.len() as i32, fields.as_mut_ptr()) })
}

/// Returns the means of the performance counters with these ids between two samples.
///
/// The wrapper has no names for newer counters of NVML.
pub(crate) fn performance_counters(
    before: &GpmSample<'_>,
    after: &GpmSample<'_>,
    ids: &[u32],
) -> Result<Vec<Result<f64, NvmlError>>, NvmlError> {
    let function = nvml_sym(before.nvml().lib().nvmlGpmMetricsGet.as_ref())?;
    // SAFETY: a structure of numbers and pointers, which may all be zero.
    let mut request: c::nvmlGpmMetricsGet_t = unsafe { mem::zeroed() };
    request.version = c::NVML_GPM_METRICS_GET_VERSION;
    for (cell, id) in request.metrics.iter_mut().zip(ids) {
        cell.metricId = *id;
        request.numMetrics += 1;
    }
    // SAFETY: both samples live until the call returns, which keeps neither.
    (request.sample1, request.sample2) = unsafe { (before.handle(), after.handle()) };
    // SAFETY: see the header of this file; the count is that of the cells that are filled.
    nvml_try(unsafe { function(&mut request) })?;
    let answers = request.metrics.iter().take(ids.len());
    Ok(answers
        .map(|cell| nvml_try(cell.nvmlReturn).map(|()| cell.value))
        .collect())
}

/// Returns the value of one field.
///
/// # Errors
/// The reason for the absence of a value.
pub(crate) fn field_answer(field: &FieldCell) -> Result<f64, NvmlError> {
    nvml_try(field.nvmlReturn)?;
    let value = &field.value;
    // SAFETY: every member of the union is a plain number, and NVML filled the one that the type names.
    Ok(unsafe {
        match field.valueType {
            c::nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE => value.dVal,
            c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => f64::from(value.uiVal),
            c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG => value.ulVal as f64,
            c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => value.ullVal as f64,
            c::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG => value.sllVal as f64,
            c::nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT => f64::from(value.siVal),
            c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT => f64::from(value.usVal),
            unknown => return Err(NvmlError::UnexpectedVariant(unknown)),
        }
    })
}

/// Returns the value of one field as an integer. A floating-point number would lose bits of a large count.
///
/// # Errors
/// The reason for the absence of a value.
pub(crate) fn field_count(field: &FieldCell) -> Result<u64, NvmlError> {
    nvml_try(field.nvmlReturn)?;
    if field.valueType == c::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG {
        // SAFETY: this member is filled for this type.
        return Ok(unsafe { field.value.ullVal });
    }
    // A count below zero is invalid.
    field_answer(field).map(|value| value as u64)
}

/// The utilization of the JPEG engines in percent.
pub(crate) fn jpg_utilization(device: &Device<'_>) -> Result<u32, NvmlError> {
    utilization(device, device.nvml().lib().nvmlDeviceGetJpgUtilization.as_ref())
}

/// The utilization of the optical flow engines in percent.
pub(crate) fn ofa_utilization(device: &Device<'_>) -> Result<u32, NvmlError> {
    utilization(device, device.nvml().lib().nvmlDeviceGetOfaUtilization.as_ref())
}

type Utilization = unsafe extern "C" fn(c::nvmlDevice_t, *mut u32, *mut u32) -> c::nvmlReturn_t;

fn utilization<E>(device: &Device<'_>, function: Result<&Utilization, E>) -> Result<u32, NvmlError> {
    let function = function.map_err(|_| NvmlError::FunctionNotFound)?;
    let (mut value, mut period) = (0, 0);
    // SAFETY: see the header of this file.
    nvml_try(unsafe { function(device.handle(), &mut value, &mut period) })?;
    Ok(value)
}

/// Returns the temperature of the GPU in degrees Celsius, by the older call if the driver lacks the newer one.
pub(crate) fn temperature(device: &Device<'_>) -> Result<i32, NvmlError> {
    let begin = c::nvmlTemperature_t {
        version: version::<c::nvmlTemperature_t>(1),
        sensorType: c::nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU,
        temperature: 0,
    };
    let answer: Result<c::nvmlTemperature_t, NvmlError> = ask!(device, nvmlDeviceGetTemperatureV, begin);
    match answer {
        Ok(answer) => Ok(answer.temperature),
        Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => device
            .temperature(TemperatureSensor::Gpu)
            .map(|degrees| i32::try_from(degrees).unwrap_or(i32::MAX)),
        Err(error) => Err(error),
    }
}

/// Returns the reasons for low clocks as a bit mask (`nvmlClocksEventReason*`), by the older call if the driver lacks the newer
/// one.
pub(crate) fn clock_event_reasons(device: &Device<'_>) -> Result<u64, NvmlError> {
    let reasons: Result<u64, NvmlError> = ask!(device, nvmlDeviceGetCurrentClocksEventReasons, 0);
    match reasons {
        Err(NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound) => {
            ask!(device, nvmlDeviceGetCurrentClocksThrottleReasons, 0)
        }
        reasons => reasons,
    }
}

/// Returns whether the repair of a memory channel and of a TPC is pending until the next reset.
pub(crate) fn pending_repairs(device: &Device<'_>) -> Result<(bool, bool), NvmlError> {
    let begin = c::nvmlRepairStatus_t {
        version: version::<c::nvmlRepairStatus_t>(1),
        bChannelRepairPending: 0,
        bTpcRepairPending: 0,
    };
    let status: Result<c::nvmlRepairStatus_t, NvmlError> = ask!(device, nvmlDeviceGetRepairStatus, begin);
    status.map(|status| (status.bChannelRepairPending != 0, status.bTpcRepairPending != 0))
}

/// Returns whether a part of the memory cannot be repaired. The bindings do not have this call.
pub(crate) fn has_unrepairable_memory(device: &Device<'_>) -> Result<bool, NvmlError> {
    /// `nvmlUnrepairableMemoryStatus_v1_t` of `nvml.h`.
    #[repr(C)]
    struct Status {
        version: u32,
        unrepairable: u32,
    }
    type Call = unsafe extern "C" fn(c::nvmlDevice_t, *mut Status) -> c::nvmlReturn_t;
    let library = &device.nvml().lib().__library;
    // SAFETY: this is the signature of the symbol in `nvml.h`.
    let call = unsafe { library.get::<Call>(b"nvmlDeviceGetUnrepairableMemoryFlag_v1\0") };
    let call = call.map_err(|_| NvmlError::FunctionNotFound)?;
    let mut status = Status {
        version: version::<Status>(1),
        unrepairable: 0,
    };
    // SAFETY: see the header of this file.
    nvml_try(unsafe { call(device.handle(), &mut status) })?;
    Ok(status.unrepairable != 0)
}

/// Returns the workload power profiles that the GPU supports and those in force, as bit masks of the first 64
/// (`NVML_POWER_PROFILE_*`).
pub(crate) fn power_profiles(device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    type Profiles = c::nvmlWorkloadPowerProfileCurrentProfiles_t;
    // SAFETY: the structure is made of numbers and arrays of them, for which zero is a value.
    let mut begin: Profiles = unsafe { mem::zeroed() };
    begin.version = version::<Profiles>(1);
    let profiles: Result<Profiles, NvmlError> =
        ask!(device, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, begin);
    let first = |mask: c::nvmlMask255_t| u64::from(mask.mask[0]) | u64::from(mask.mask[1]) << 32;
    profiles.map(|profiles| {
        (
            first(profiles.perfProfilesMask),
            first(profiles.enforcedProfilesMask),
        )
    })
}

/// The type of the device at the other end of an NVLink (`NVML_NVLINK_DEVICE_TYPE_*`).
pub(crate) fn nvlink_remote_type(device: &Device<'_>, link: u32) -> Result<u32, NvmlError> {
    ask!(device, nvmlDeviceGetNvLinkRemoteDeviceType, 0, link)
}

/// Returns the position of the GPU in a rack.
pub(crate) fn platform(device: &Device<'_>) -> Result<c::nvmlPlatformInfo_t, NvmlError> {
    // SAFETY: the structure is made of numbers and arrays of them, for which zero is a value.
    let mut begin: c::nvmlPlatformInfo_t = unsafe { mem::zeroed() };
    begin.version = version::<c::nvmlPlatformInfo_t>(2);
    ask!(device, nvmlDeviceGetPlatformInfo, begin)
}

/// Returns the margin in degrees Celsius until the GPU slows down.
pub(crate) fn margin_temperature(device: &Device<'_>) -> Result<i32, NvmlError> {
    let begin = c::nvmlMarginTemperature_t {
        version: version::<c::nvmlMarginTemperature_t>(1),
        marginTemperature: 0,
    };
    let margin: Result<c::nvmlMarginTemperature_t, NvmlError> =
        ask!(device, nvmlDeviceGetMarginTemperature, begin);
    margin.map(|margin| margin.marginTemperature)
}

/// The target speed of a fan, in percent.
pub(crate) fn target_fan_speed(device: &Device<'_>, fan: u32) -> Result<u32, NvmlError> {
    ask!(device, nvmlDeviceGetTargetFanSpeed, 0, fan)
}

/// Returns the highest PCI Express generation that the GPU itself supports.
pub(crate) fn gpu_max_pcie_generation(device: &Device<'_>) -> Result<u32, NvmlError> {
    ask!(device, nvmlDeviceGetGpuMaxPcieLinkGeneration, 0)
}

/// Returns total, free and used memory in bytes by the first version of the call, which does not report reserved memory.
pub(crate) fn memory_v1(device: &Device<'_>) -> Result<(u64, u64, u64), NvmlError> {
    let begin = c::nvmlMemory_t {
        total: 0,
        free: 0,
        used: 0,
    };
    let memory: Result<c::nvmlMemory_t, NvmlError> = ask!(device, nvmlDeviceGetMemoryInfo, begin);
    memory.map(|memory| (memory.total, memory.free, memory.used))
}

/// Returns the total and used memory in bytes that is protected from the host.
pub(crate) fn protected_memory(device: &Device<'_>) -> Result<(u64, u64), NvmlError> {
    let begin = c::nvmlMemory_t {
        total: 0,
        free: 0,
        used: 0,
    };
    let memory: Result<c::nvmlMemory_t, NvmlError> =
        ask!(device, nvmlDeviceGetConfComputeProtectedMemoryUsage, begin);
    memory.map(|memory| (memory.total, memory.used))
}

/// Returns whether memory is encrypted.
pub(crate) fn dram_encrypted(device: &Device<'_>) -> Result<bool, NvmlError> {
    let function = nvml_sym(device.nvml().lib().nvmlDeviceGetDramEncryptionMode.as_ref())?;
    let begin = || c::nvmlDramEncryptionInfo_t {
        version: version::<c::nvmlDramEncryptionInfo_t>(1),
        encryptionState: 0,
    };
    let (mut current, mut pending) = (begin(), begin());
    // SAFETY: see the header of this file.
    nvml_try(unsafe { function(device.handle(), &mut current, &mut pending) })?;
    Ok(current.encryptionState != 0)
}

/// Returns whether a licence for virtual GPUs is held; [`NvmlError::NotSupported`] if the GPU supports no licence.
pub(crate) fn vgpu_licensed(device: &Device<'_>) -> Result<bool, NvmlError> {
    // SAFETY: the structure is made of numbers and arrays of them, for which zero is a value.
    let begin: c::nvmlGridLicensableFeatures_t = unsafe { mem::zeroed() };
    let features: Result<c::nvmlGridLicensableFeatures_t, NvmlError> =
        ask!(device, nvmlDeviceGetGridLicensableFeatures_v4, begin);
    let features = features?;
    if features.isGridLicenseSupported == 0 {
        return Err(NvmlError::NotSupported);
    }
    let count = (features.licensableFeaturesCount as usize).min(features.gridLicensableFeatures.len());
    Ok(features.gridLicensableFeatures[..count]
        .iter()
        .any(|feature| feature.featureEnabled != 0))
}

/// Returns the numbers of memory banks by their remaining spare rows: all, most, some, few, none.
pub(crate) fn row_remapper_histogram(device: &Device<'_>) -> Result<[u32; 5], NvmlError> {
    let begin = c::nvmlRowRemapperHistogramValues_t {
        max: 0,
        high: 0,
        partial: 0,
        low: 0,
        none: 0,
    };
    let banks: Result<c::nvmlRowRemapperHistogramValues_t, NvmlError> =
        ask!(device, nvmlDeviceGetRowRemapperHistogram, begin);
    banks.map(|banks| [banks.max, banks.high, banks.partial, banks.low, banks.none])
}

/// Returns the error counts of the on-chip memory.
pub(crate) fn sram_errors(device: &Device<'_>) -> Result<c::nvmlEccSramErrorStatus_t, NvmlError> {
    // SAFETY: the structure is made of numbers, for which zero is a value.
    let mut begin: c::nvmlEccSramErrorStatus_t = unsafe { mem::zeroed() };
    begin.version = version::<c::nvmlEccSramErrorStatus_t>(1);
    ask!(device, nvmlDeviceGetSramEccErrorStatus, begin)
}

/// The registration of a GPU with its NVLink fabric.
pub(crate) struct Fabric {
    /// The state of the registration (`NVML_GPU_FABRIC_STATE_*`).
    pub(crate) state: u32,
    /// The health mask.
    pub(crate) health: u32,
    /// The driver's own health summary (`NVML_GPU_FABRIC_HEALTH_SUMMARY_*`); zero before driver 580.
    pub(crate) summary: u8,
    /// The UUID of the fabric; zeroes before the registration.
    pub(crate) cluster_uuid: [u8; 16],
    /// The id of the clique: the GPUs of the fabric that this GPU can reach.
    pub(crate) clique_id: u32,
}

/// Returns the registration by the third version of the structure, which has the summary, or by the second, which drivers since
/// 550 support.
pub(crate) fn fabric(device: &Device<'_>) -> Result<Fabric, NvmlError> {
    match fabric_of(device, version::<c::nvmlGpuFabricInfo_v3_t>(3)) {
        // A driver refuses an unknown version as an invalid argument, or with a code that the wrapper does not know.
        Err(NvmlError::InvalidArg | NvmlError::UnexpectedVariant(_)) => {
            fabric_of(device, version::<c::nvmlGpuFabricInfo_v2_t>(2))
        }
        answer => answer,
    }
}

fn fabric_of(device: &Device<'_>, version: u32) -> Result<Fabric, NvmlError> {
    // SAFETY: the structure is made of numbers and arrays of them, for which zero is a value.
    let mut begin: c::nvmlGpuFabricInfoV_t = unsafe { mem::zeroed() };
    // The third version is the longest, so there is room for either.
    begin.version = version;
    let info: Result<c::nvmlGpuFabricInfoV_t, NvmlError> = ask!(device, nvmlDeviceGetGpuFabricInfoV, begin);
    let info = info?;
    nvml_try(info.status)?;
    Ok(Fabric {
        state: u32::from(info.state),
        health: info.healthMask,
        summary: info.healthSummary,
        cluster_uuid: info.clusterUuid,
        clique_id: info.cliqueId,
    })
}

/// Returns the ids of the GPU instance and the compute instance of a MIG device.
pub(crate) fn mig_ids(device: &Device<'_>) -> Result<(u32, u32), NvmlError> {
    let gpu_instance: Result<u32, NvmlError> = ask!(device, nvmlDeviceGetGpuInstanceId, 0);
    let compute_instance: Result<u32, NvmlError> = ask!(device, nvmlDeviceGetComputeInstanceId, 0);
    Ok((gpu_instance?, compute_instance?))
}

/// Returns the event types that a GPU supports, as a bit mask.
pub(crate) fn supported_events(device: &Device<'_>) -> Result<u64, NvmlError> {
    ask!(device, nvmlDeviceGetSupportedEventTypes, 0)
}

/// Registers a set for event types of a GPU. The wrapper knows only some of the types.
pub(crate) fn register_events(device: &Device<'_>, types: u64, set: &EventSet<'_>) -> Result<(), NvmlError> {
    let function = nvml_sym(device.nvml().lib().nvmlDeviceRegisterEvents.as_ref())?;
    // SAFETY: see the header of this file; the set is alive.
    nvml_try(unsafe { function(device.handle(), types, set.handle()) })
}

/// An event.
pub(crate) struct Event {
    /// The bit of its type (`nvmlEventType*`).
    pub(crate) kind: u64,
    /// The code of an XID error.
    pub(crate) data: u64,
    /// The GPU instance.
    pub(crate) gpu_instance_id: Option<u32>,
}

/// Waits for the next event, for at most `timeout_ms`.
///
/// # Errors
/// [`NvmlError::Timeout`] if no event came.
pub(crate) fn next_event(nvml: &Nvml, set: &EventSet<'_>, timeout_ms: u32) -> Result<Event, NvmlError> {
    const NO_INSTANCE: u32 = u32::MAX;
    let function = nvml_sym(nvml.lib().nvmlEventSetWait_v2.as_ref())?;
    // SAFETY: the structure is made of numbers and a handle, for which null is a value.
    let mut event: c::nvmlEventData_t = unsafe { mem::zeroed() };
    // SAFETY: the set is alive, and so is the event.
    nvml_try(unsafe { function(set.handle(), &mut event, timeout_ms) })?;
    Ok(Event {
        kind: event.eventType,
        data: event.eventData,
        gpu_instance_id: Some(event.gpuInstanceId).filter(|id| *id != NO_INSTANCE),
    })
}
