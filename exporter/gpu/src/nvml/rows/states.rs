//! States: the performance state, the compute mode, features, faults, and the recovery action of the driver.

use nvml_wrapper::{
    Device,
    enum_wrappers::device::{ComputeMode, PerformanceState},
    error::NvmlError,
    sys_exports::field_id::{
        NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, NVML_FI_DEV_REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_PENDING,
        NVML_FI_DEV_RETIRED_PENDING, NVML_FI_PWR_SMOOTHING_ENABLED,
    },
};
use pulsetrain_semconv::{
    attribute::{
        GPU_COMPUTE_MODE, GPU_FABRIC_STATE, GPU_FAULT, GPU_FEATURE, GPU_PERFORMANCE_STATE, GPU_POWER_PROFILE,
        GPU_RECOVERY_ACTION,
    },
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Tick},
        FieldValue::{Is, State},
        QueryContext, QueryError, Row,
    },
};
use crate::{
    Reason,
    reading::{Fixed, Readings, flag},
};

const NO_FABRIC: &str = "the GPU is in no NVLink fabric";
const NO_FEATURE: &str = "the GPU or its driver does not have it";
const NO_REMAPPING: &str = "the GPU is older than Ampere or is split, or has no ECC memory";

/// Workload power profiles by their bits (`NVML_POWER_PROFILE_*`).
const PROFILES: [(u32, Fixed); 15] = [
    (0, &[(&GPU_POWER_PROFILE, "max_p")]),
    (1, &[(&GPU_POWER_PROFILE, "max_q")]),
    (2, &[(&GPU_POWER_PROFILE, "compute")]),
    (3, &[(&GPU_POWER_PROFILE, "memory_bound")]),
    (4, &[(&GPU_POWER_PROFILE, "network")]),
    (5, &[(&GPU_POWER_PROFILE, "balanced")]),
    (6, &[(&GPU_POWER_PROFILE, "llm_inference")]),
    (7, &[(&GPU_POWER_PROFILE, "llm_training")]),
    (8, &[(&GPU_POWER_PROFILE, "rbm")]),
    (9, &[(&GPU_POWER_PROFILE, "dcpcie")]),
    (10, &[(&GPU_POWER_PROFILE, "hmma_sparse")]),
    (11, &[(&GPU_POWER_PROFILE, "hmma_dense")]),
    (12, &[(&GPU_POWER_PROFILE, "sync_balanced")]),
    (13, &[(&GPU_POWER_PROFILE, "hpc")]),
    (14, &[(&GPU_POWER_PROFILE, "mig")]),
];

/// A row of a feature that is on or off.
macro_rules! feature {
    ($feature:literal, $call:literal, $read:expr) => {
        Row::value(
            &metric::GPU_FEATURE_ACTIVE,
            &[(&GPU_FEATURE, $feature)],
            $call,
            Infrequent,
            NO_FEATURE,
            |gpu| {
                let read: fn(&Device<'_>) -> Result<bool, NvmlError> = $read;
                Ok(flag(read(gpu.device)?))
            },
        )
    };
}

/// A row of a fault that is one field.
macro_rules! fault {
    ($fault:literal, $field:ident, $absent:expr) => {
        Row::field(
            &metric::GPU_FAULT_ACTIVE,
            (stringify!($field), $field),
            &[(&GPU_FAULT, $fault)],
            Is(1),
            Infrequent,
            $absent,
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    Row::call(
        &metric::GPU_PERFORMANCE_STATE,
        "nvmlDeviceGetPerformanceState",
        Tick,
        "the GPU does not report it",
        |gpu, out| {
            let state = performance_state(&gpu.device.performance_state()?);
            let state = state.ok_or(QueryError::Because(Reason::NoData))?;
            out.state(&metric::GPU_PERFORMANCE_STATE, &GPU_PERFORMANCE_STATE, state);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_COMPUTE_MODE,
        "nvmlDeviceGetComputeMode",
        Infrequent,
        "the GPU has no compute mode",
        |gpu, out| {
            let mode = compute_mode(&gpu.device.compute_mode()?);
            out.state(&metric::GPU_COMPUTE_MODE, &GPU_COMPUTE_MODE, mode);
            Ok(())
        },
    ),
    feature!("persistence", "nvmlDeviceGetPersistenceMode", |gpu| gpu
        .is_in_persistent_mode()),
    Row::call(
        &metric::GPU_FEATURE_ACTIVE,
        "nvmlDeviceGetEccMode",
        Infrequent,
        NO_FEATURE,
        |gpu, out| {
            let mode = gpu.device.is_ecc_enabled()?;
            feature(out, &[(&GPU_FEATURE, "ecc")], mode.currently_enabled);
            feature(out, &[(&GPU_FEATURE, "ecc_pending")], mode.pending_enabled);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_FEATURE_ACTIVE,
        "nvmlDeviceGetMigMode",
        Infrequent,
        NO_FEATURE,
        |gpu, out| {
            let mode = gpu.device.mig_mode()?;
            feature(out, &[(&GPU_FEATURE, "mig")], mode.current == 1);
            feature(out, &[(&GPU_FEATURE, "mig_pending")], mode.pending == 1);
            Ok(())
        },
    ),
    Row::field(
        &metric::GPU_FEATURE_ACTIVE,
        ("NVML_FI_PWR_SMOOTHING_ENABLED", NVML_FI_PWR_SMOOTHING_ENABLED),
        &[(&GPU_FEATURE, "power_smoothing")],
        Is(1),
        Infrequent,
        "the GPU is older than Blackwell",
    ),
    feature!("gsp", "nvmlDeviceGetGspFirmwareMode", |gpu| Ok(gpu
        .gsp_firmware_mode()?
        .enabled)),
    feature!("confidential_compute", "nvmlSystemGetConfComputeState", |gpu| gpu
        .is_cc_enabled()),
    feature!(
        "dram_encryption",
        "nvmlDeviceGetDramEncryptionMode",
        ffi::dram_encrypted
    ),
    feature!(
        "vgpu_license",
        "nvmlDeviceGetGridLicensableFeatures_v4",
        ffi::vgpu_licensed
    ),
    fault!("row_remap_pending", NVML_FI_DEV_REMAPPED_PENDING, NO_REMAPPING),
    fault!("row_remap_failure", NVML_FI_DEV_REMAPPED_FAILURE, NO_REMAPPING),
    fault!(
        "page_retirement_pending",
        NVML_FI_DEV_RETIRED_PENDING,
        "the GPU does not retire pages"
    ),
    Row::value(
        &metric::GPU_FAULT_ACTIVE,
        &[(&GPU_FAULT, "sram_threshold_exceeded")],
        "nvmlDeviceGetSramEccErrorStatus",
        Infrequent,
        "the GPU is older than Ampere, or its driver older than 535",
        |gpu| Ok(flag(ffi::sram_errors(gpu.device)?.bThresholdExceeded != 0)),
    ),
    Row::value(
        &metric::GPU_FAULT_ACTIVE,
        &[(&GPU_FAULT, "fabric_degraded")],
        "nvmlDeviceGetGpuFabricInfoV.healthMask",
        Infrequent,
        NO_FABRIC,
        |gpu| {
            let fabric = ffi::fabric(gpu.device)?;
            let degraded = fabric_degraded(fabric.health, fabric.summary);
            degraded
                .map(flag)
                .ok_or(QueryError::Because(Reason::NotSupported))
        },
    ),
    Row::call(
        &metric::GPU_FAULT_ACTIVE,
        "nvmlDeviceGetRepairStatus",
        Infrequent,
        "the GPU does not repair itself, or its driver is older than 580",
        |gpu, out| {
            let (channel, tpc) = ffi::pending_repairs(gpu.device)?;
            let fault = &metric::GPU_FAULT_ACTIVE;
            out.flag(fault, &[(&GPU_FAULT, "channel_repair_pending")], channel);
            out.flag(fault, &[(&GPU_FAULT, "tpc_repair_pending")], tpc);
            Ok(())
        },
    ),
    Row::value(
        &metric::GPU_FAULT_ACTIVE,
        &[(&GPU_FAULT, "unrepairable_memory")],
        "nvmlDeviceGetUnrepairableMemoryFlag_v1",
        Infrequent,
        "the GPU does not repair its memory, or its driver is older than 590",
        |gpu| Ok(flag(ffi::has_unrepairable_memory(gpu.device)?)),
    ),
    Row::call(
        &metric::GPU_POWER_PROFILE_ACTIVE,
        "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
        Infrequent,
        "the GPU has no workload power profiles, as those before Blackwell",
        power_profiles,
    ),
    Row::value(
        &metric::GPU_DRIVER_LATENCY,
        &[],
        "nvmlFieldValue_t.latencyUsec",
        Tick,
        "the driver does not measure it",
        |gpu| {
            let latency = gpu.fields_latency.map(|latency| latency.as_secs_f64());
            latency.ok_or(QueryError::Because(Reason::NoData))
        },
    ),
    Row::field(
        &metric::GPU_RECOVERY_ACTION,
        (
            "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
            NVML_FI_DEV_GET_GPU_RECOVERY_ACTION,
        ),
        &[],
        State(&GPU_RECOVERY_ACTION, recovery_action),
        Infrequent,
        "the driver is older than 560",
    ),
    Row::call(
        &metric::GPU_FABRIC_STATE,
        "nvmlDeviceGetGpuFabricInfoV.state",
        Infrequent,
        NO_FABRIC,
        |gpu, out| {
            let state = fabric_state(ffi::fabric(gpu.device)?.state);
            out.state(&metric::GPU_FABRIC_STATE, &GPU_FABRIC_STATE, state);
            Ok(())
        },
    ),
];

fn feature(out: &mut Readings, feature: Fixed, is_on: bool) {
    out.flag(&metric::GPU_FEATURE_ACTIVE, feature, is_on);
}

/// Reads the profiles that the GPU supports. Unlisted profiles are reported as one, which is active if one of them is.
fn power_profiles(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let (supported, active) = ffi::power_profiles(gpu.device)?;
    let listed = PROFILES.iter().fold(0, |all, (bit, _)| all | 1 << bit);
    let profiles = PROFILES.iter().map(|(bit, profile)| (1 << bit, *profile));
    let other: Fixed = &[(&GPU_POWER_PROFILE, "other")];
    for (mask, profile) in profiles.chain([(!listed, other)]) {
        if supported & mask != 0 {
            out.flag(&metric::GPU_POWER_PROFILE_ACTIVE, profile, active & mask != 0);
        }
    }
    Ok(())
}

fn performance_state(state: &PerformanceState) -> Option<&'static str> {
    Some(match state {
        PerformanceState::Zero => "p0",
        PerformanceState::One => "p1",
        PerformanceState::Two => "p2",
        PerformanceState::Three => "p3",
        PerformanceState::Four => "p4",
        PerformanceState::Five => "p5",
        PerformanceState::Six => "p6",
        PerformanceState::Seven => "p7",
        PerformanceState::Eight => "p8",
        PerformanceState::Nine => "p9",
        PerformanceState::Ten => "p10",
        PerformanceState::Eleven => "p11",
        PerformanceState::Twelve => "p12",
        PerformanceState::Thirteen => "p13",
        PerformanceState::Fourteen => "p14",
        PerformanceState::Fifteen => "p15",
        PerformanceState::Unknown => return None,
    })
}

fn compute_mode(mode: &ComputeMode) -> &'static str {
    match mode {
        ComputeMode::Default => "default",
        ComputeMode::ExclusiveThread => "exclusive_thread",
        ComputeMode::Prohibited => "prohibited",
        ComputeMode::ExclusiveProcess => "exclusive_process",
    }
}

/// Returns the name of `NVML_GPU_RECOVERY_ACTION_*` of driver 615, or `other` for an action of a later driver.
fn recovery_action(action: u64) -> &'static str {
    match action {
        0 => "none",
        1 => "gpu_reset",
        2 => "node_reboot",
        3 => "drain_p2p",
        4 => "drain_and_reset",
        5 => "recover_imex_domain",
        6 => "bus_reset",
        7 => "system_reboot",
        _ => "other",
    }
}

/// Returns the name of `NVML_GPU_FABRIC_STATE_*`, or `other` for a state of a later driver.
fn fabric_state(state: u32) -> &'static str {
    match state {
        0 => "not_supported",
        1 => "not_started",
        2 => "in_progress",
        3 => "completed",
        _ => "other",
    }
}

/// Returns whether the fabric is degraded; `None` if the GPU reports no health at all, as HGX H100 does.
///
/// `NVML_GPU_FABRIC_HEALTH_MASK_*` has two bits each for degraded bandwidth, route recovery, unhealthy routes and access
/// timeouts: 1 is a problem. From bit 8 on, four bits are for the configuration: 1 is correct, every higher value is a problem.
/// From bit 12 on, two bits are 2 if the GPU has no partition of the fabric. The summary (`NVML_GPU_FABRIC_HEALTH_SUMMARY_*`) is
/// 2 for unhealthy and 3 for limited capacity.
fn fabric_degraded(health: u32, summary: u8) -> Option<bool> {
    let is_wrong = [0, 2, 4, 6].into_iter().any(|shift| health >> shift & 3 == 1);
    let is_misconfigured = health >> 8 & 0xf > 1;
    let has_no_partition = health >> 12 & 3 == 2;
    let is_unhealthy = matches!(summary, 2 | 3);
    (health != 0 || summary != 0).then_some(is_wrong || is_misconfigured || has_no_partition || is_unhealthy)
}

#[cfg(test)]
mod tests {
    use super::{fabric_degraded, recovery_action};

    #[test]
    fn a_fabric_is_degraded_when_any_part_of_its_health_is_bad() {
        let all_well = 2 | 2 << 2 | 2 << 4 | 2 << 6;
        for (health, summary, degraded) in [
            (all_well, 0, Some(false)),
            (all_well | 1 << 8 | 1 << 12, 1, Some(false)),
            (0, 0, None),
            (0, 1, Some(false)),
            (1 | 2 << 2, 0, Some(true)),
            (2 | 1 << 4, 0, Some(true)),
            (all_well | 4 << 8, 0, Some(true)),
            (all_well | 2 << 12, 0, Some(true)),
            (all_well, 2, Some(true)),
            (all_well, 3, Some(true)),
        ] {
            assert_eq!(
                fabric_degraded(health, summary),
                degraded,
                "{health:#x} {summary}"
            );
        }
    }

    #[test]
    fn unknown_recovery_action_of_a_newer_driver_is_not_a_reset() {
        assert_eq!(recovery_action(4), "drain_and_reset");
        assert_eq!(recovery_action(5), "recover_imex_domain");
        assert_eq!([6, 7].map(recovery_action), ["bus_reset", "system_reboot"]);
        assert_eq!(recovery_action(99), "other");
    }
}
