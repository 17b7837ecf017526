//! Calls that return numbers: one reading each, with the scenario's name of the reading.

use std::ffi::{c_int, c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::{call::answer_for, out::put};

/// One line per call: its name, its argument, the type of its result, and the reading that it returns.
macro_rules! scalars {
    ($($call:ident($($arg:ident),*) -> $out:ty = $reading:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, $($arg: c_uint,)* out: *mut $out) -> nvmlReturn_t {
            answer_for(stringify!($call), device, |target| {
                let reading: &str = &$reading;
                // SAFETY: by NVML's contract the pointer is null or points to a number of its type.
                unsafe { put(out, target.read(reading)? as $out) }
            })
        }
    )*};
}

/// The same for calls that return two numbers.
macro_rules! pairs {
    ($($call:ident -> ($first:ty = $one:literal, $second:ty = $two:literal);)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, first: *mut $first, second: *mut $second) -> nvmlReturn_t {
            answer_for(stringify!($call), device, |target| {
                // SAFETY: by NVML's contract the pointers are null or point to numbers of their types.
                unsafe {
                    put(first, target.read($one)? as $first)?;
                    put(second, target.read($two)? as $second)
                }
            })
        }
    )*};
}

/// "On Ampere (except GA100) or newer GPUs, the API returns power averaged over 1 sec interval. On GA100 and older
/// architectures, instantaneous power is returned." (nvml.h) Power is instantaneous here if the scenario has no average.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: nvmlDevice_t, out: *mut c_uint) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetPowerUsage", device, |target| {
        let average = target.read("power.average_mw");
        let milliwatts = average.or_else(|_| target.read("power.instant_mw"))?;
        // SAFETY: by NVML's contract the pointer is null or points to a number of its type.
        unsafe { put(out, milliwatts as c_uint) }
    })
}

scalars! {
    nvmlDeviceGetTotalEnergyConsumption() -> c_ulonglong = "energy_mj";
    nvmlDeviceGetPowerManagementLimit() -> c_uint = "power.limit.requested_mw";
    nvmlDeviceGetEnforcedPowerLimit() -> c_uint = "power.limit.enforced_mw";
    nvmlDeviceGetPowerManagementDefaultLimit() -> c_uint = "power.limit.default_mw";
    nvmlDeviceGetPowerManagementMode() -> c_uint = "power.management";
    nvmlDeviceGetPowerSource() -> c_uint = "power.source";

    nvmlDeviceGetTemperature(sensor) -> c_uint = format!("temperature.{}_c", sensor_name(sensor));
    nvmlDeviceGetTemperatureThreshold(threshold) -> c_uint = format!("temperature.threshold.{}_c", threshold_name(threshold));

    nvmlDeviceGetClockInfo(clock) -> c_uint = format!("clock.{}_mhz", clock_name(clock));
    nvmlDeviceGetMaxClockInfo(clock) -> c_uint = format!("clock.max.{}_mhz", clock_name(clock));
    nvmlDeviceGetApplicationsClock(clock) -> c_uint = format!("clock.application.{}_mhz", clock_name(clock));
    nvmlDeviceGetDefaultApplicationsClock(clock) -> c_uint = format!("clock.application_default.{}_mhz", clock_name(clock));
    nvmlDeviceGetMaxCustomerBoostClock(clock) -> c_uint = format!("clock.boost_max.{}_mhz", clock_name(clock));
    nvmlDeviceGetClock(clock, id) -> c_uint = format!("clock{}.{}_mhz", clock_id_name(id), clock_name(clock));
    nvmlDeviceGetAdaptiveClockInfoStatus() -> c_uint = "clock.adaptive";
    nvmlDeviceGetCurrentClocksEventReasons() -> c_ulonglong = "clock_event_reasons";
    nvmlDeviceGetCurrentClocksThrottleReasons() -> c_ulonglong = "clock_event_reasons";
    nvmlDeviceGetSupportedClocksEventReasons() -> c_ulonglong = "clock_event_reasons.supported";
    nvmlDeviceGetSupportedClocksThrottleReasons() -> c_ulonglong = "clock_event_reasons.supported";
    nvmlDeviceGetPerformanceState() -> c_uint = "performance_state";
    nvmlDeviceGetPowerState() -> c_uint = "performance_state";

    nvmlDeviceGetNumFans() -> c_uint = "fan.count";
    nvmlDeviceGetFanSpeed() -> c_uint = "fan.0.percent";
    nvmlDeviceGetFanSpeed_v2(fan) -> c_uint = format!("fan.{fan}.percent");
    nvmlDeviceGetTargetFanSpeed(fan) -> c_uint = format!("fan.{fan}.target_percent");
    nvmlDeviceGetFanControlPolicy_v2(fan) -> c_uint = format!("fan.{fan}.policy");

    nvmlDeviceGetCurrPcieLinkGeneration() -> c_uint = "pcie.generation";
    nvmlDeviceGetMaxPcieLinkGeneration() -> c_uint = "pcie.generation_max";
    nvmlDeviceGetGpuMaxPcieLinkGeneration() -> c_uint = "pcie.generation_gpu_max";
    nvmlDeviceGetCurrPcieLinkWidth() -> c_uint = "pcie.width";
    nvmlDeviceGetMaxPcieLinkWidth() -> c_uint = "pcie.width_max";
    nvmlDeviceGetPcieSpeed() -> c_uint = "pcie.speed_mbps";
    nvmlDeviceGetPcieLinkMaxSpeed() -> c_uint = "pcie.speed_max";
    nvmlDeviceGetPcieReplayCounter() -> c_uint = "pcie.replays";
    nvmlDeviceGetPcieThroughput(counter) -> c_uint = if counter == 0 { "pcie.throughput.tx_kbps" } else { "pcie.throughput.rx_kbps" };

    nvmlDeviceGetPersistenceMode() -> c_uint = "mode.persistence";
    nvmlDeviceGetComputeMode() -> c_uint = "mode.compute";
    nvmlDeviceGetDisplayMode() -> c_uint = "mode.display";
    nvmlDeviceGetDisplayActive() -> c_uint = "mode.display_active";
    nvmlDeviceGetAccountingMode() -> c_uint = "mode.accounting";
    nvmlDeviceGetAccountingBufferSize() -> c_uint = "accounting_buffer_size";
    nvmlDeviceGetVirtualizationMode() -> c_uint = "mode.virtualization";
    nvmlDeviceGetDefaultEccMode() -> c_uint = "mode.ecc_default";

    nvmlDeviceGetBrand() -> c_uint = "brand";
    nvmlDeviceGetArchitecture() -> c_uint = "architecture";
    nvmlDeviceGetBusType() -> c_uint = "bus_type";
    nvmlDeviceGetBoardId() -> c_uint = "board_id";
    nvmlDeviceGetMultiGpuBoard() -> c_uint = "multi_gpu_board";
    nvmlDeviceGetMinorNumber() -> c_uint = "minor_number";
    nvmlDeviceGetModuleId() -> c_uint = "module_id";
    nvmlDeviceGetNumaNodeId() -> c_uint = "numa_node";
    nvmlDeviceGetNumGpuCores() -> c_uint = "cores";
    nvmlDeviceGetMemoryBusWidth() -> c_uint = "memory.bus_width";
    nvmlDeviceGetIrqNum() -> c_uint = "irq";
    nvmlDeviceGetInforomConfigurationChecksum() -> c_uint = "inforom_checksum";
    nvmlDeviceGetGpcClkVfOffset() -> c_int = "clock.offset.graphics_mhz";
    nvmlDeviceGetMemClkVfOffset() -> c_int = "clock.offset.memory_mhz";
    nvmlDeviceGetRetiredPagesPendingStatus() -> c_uint = "retired_pages.pending";
}

pairs! {
    nvmlDeviceGetPowerManagementLimitConstraints -> (c_uint = "power.limit.min_mw", c_uint = "power.limit.max_mw");
    nvmlDeviceGetEncoderUtilization -> (c_uint = "utilization.encoder_percent", c_uint = "utilization.encoder_period_us");
    nvmlDeviceGetDecoderUtilization -> (c_uint = "utilization.decoder_percent", c_uint = "utilization.decoder_period_us");
    nvmlDeviceGetJpgUtilization -> (c_uint = "utilization.jpeg_percent", c_uint = "utilization.jpeg_period_us");
    nvmlDeviceGetOfaUtilization -> (c_uint = "utilization.ofa_percent", c_uint = "utilization.ofa_period_us");
    nvmlDeviceGetMinMaxFanSpeed -> (c_uint = "fan.min_percent", c_uint = "fan.max_percent");
    nvmlDeviceGetEccMode -> (c_uint = "mode.ecc", c_uint = "mode.ecc_pending");
    nvmlDeviceGetMigMode -> (c_uint = "mode.mig", c_uint = "mode.mig_pending");
    nvmlDeviceGetGspFirmwareMode -> (c_uint = "mode.gsp", c_uint = "mode.gsp_default");
    nvmlDeviceGetGpuOperationMode -> (c_uint = "mode.operation", c_uint = "mode.operation_pending");
    nvmlDeviceGetCudaComputeCapability -> (c_int = "compute_capability.major", c_int = "compute_capability.minor");
}

fn clock_name(clock: c_uint) -> &'static str {
    ["graphics", "sm", "memory", "video"]
        .get(clock as usize)
        .unwrap_or(&"?")
}

fn clock_id_name(id: c_uint) -> &'static str {
    ["", ".application", ".application_default", ".boost_max"]
        .get(id as usize)
        .unwrap_or(&".?")
}

fn sensor_name(sensor: c_uint) -> &'static str {
    if sensor == 0 { "gpu" } else { "?" }
}

fn threshold_name(threshold: c_uint) -> &'static str {
    const NAMES: [&str; 8] = [
        "shutdown",
        "slowdown",
        "memory_max",
        "gpu_max",
        "acoustic_min",
        "acoustic_current",
        "acoustic_max",
        "gps",
    ];
    NAMES.get(threshold as usize).unwrap_or(&"?")
}
