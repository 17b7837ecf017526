//! States: how fast the GPU runs, who may use it, what is on, what is wrong, and what the driver asks to be done.

use nvml_wrapper::{
    enum_wrappers::device::{ComputeMode, PerformanceState},
    sys_exports::field_id::{
        NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, NVML_FI_DEV_REMAPPED_FAILURE, NVML_FI_DEV_REMAPPED_PENDING,
        NVML_FI_DEV_RETIRED_PENDING,
    },
};
use pulsetrain_semconv::{
    attribute::{
        GPU_COMPUTE_MODE, GPU_FABRIC_STATE, GPU_FAULT, GPU_FEATURE, GPU_PERFORMANCE_STATE,
        GPU_RECOVERY_ACTION,
    },
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Seldom, Tick},
        FieldValue::{Is, State},
        QueryError, Row,
    },
};
use crate::Reason;

const NO_FABRIC: &str = "the GPU is in no NVLink fabric";
const NO_FEATURE: &str = "the GPU or its driver does not have it";
const NO_REMAPPING: &str = "the GPU is older than Ampere or is split, or has no ECC memory";

/// A row of something that is on or off.
macro_rules! feature {
    ($feature:literal, $call:literal, $read:expr) => {
        Row::call(
            &metric::GPU_FEATURE_ACTIVE,
            $call,
            Seldom,
            NO_FEATURE,
            |gpu, out| {
                let read: fn(&nvml_wrapper::Device<'_>) -> Result<bool, nvml_wrapper::error::NvmlError> =
                    $read;
                let on = read(gpu.device)?;
                out.flag(&metric::GPU_FEATURE_ACTIVE, &[(&GPU_FEATURE, $feature)], on);
                Ok(())
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
            Seldom,
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
        Seldom,
        "the GPU does not compute",
        |gpu, out| {
            let mode = compute_mode(&gpu.device.compute_mode()?);
            out.state(&metric::GPU_COMPUTE_MODE, &GPU_COMPUTE_MODE, mode);
            Ok(())
        },
    ),
    feature!("persistence", "nvmlDeviceGetPersistenceMode", |gpu| gpu
        .is_in_persistent_mode()),
    feature!("ecc", "nvmlDeviceGetEccMode", |gpu| Ok(gpu
        .is_ecc_enabled()?
        .currently_enabled)),
    feature!("mig", "nvmlDeviceGetMigMode", |gpu| Ok(
        gpu.mig_mode()?.current == 1
    )),
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
    Row::call(
        &metric::GPU_FAULT_ACTIVE,
        "nvmlDeviceGetSramEccErrorStatus",
        Seldom,
        "the GPU is older than Ampere, or its driver older than 535",
        |gpu, out| {
            let exceeded = ffi::sram_errors(gpu.device)?.bThresholdExceeded != 0;
            let fault = &[(&GPU_FAULT, "sram_threshold_exceeded")];
            out.flag(&metric::GPU_FAULT_ACTIVE, fault, exceeded);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_FAULT_ACTIVE,
        "nvmlDeviceGetGpuFabricInfoV.healthMask",
        Seldom,
        NO_FABRIC,
        |gpu, out| {
            let fabric = ffi::fabric(gpu.device)?;
            let degraded = fabric_degraded(fabric.health, fabric.summary);
            let degraded = degraded.ok_or(QueryError::Because(Reason::NotSupported))?;
            let fault = &[(&GPU_FAULT, "fabric_degraded")];
            out.flag(&metric::GPU_FAULT_ACTIVE, fault, degraded);
            Ok(())
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
        Seldom,
        "the driver is older than 560",
    ),
    Row::call(
        &metric::GPU_FABRIC_STATE,
        "nvmlDeviceGetGpuFabricInfoV.state",
        Seldom,
        NO_FABRIC,
        |gpu, out| {
            let state = fabric_state(ffi::fabric(gpu.device)?.state);
            out.state(&metric::GPU_FABRIC_STATE, &GPU_FABRIC_STATE, state);
            Ok(())
        },
    ),
];

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

/// `NVML_GPU_RECOVERY_ACTION_*` of driver 595; `other` for what a later driver adds (615: a bus reset, a system reboot).
fn recovery_action(action: u64) -> &'static str {
    match action {
        0 => "none",
        1 => "gpu_reset",
        2 => "node_reboot",
        3 => "drain_p2p",
        4 => "drain_and_reset",
        5 => "recover_imex_domain",
        _ => "other",
    }
}

/// `NVML_GPU_FABRIC_STATE_*`; `other` for what a later driver adds.
fn fabric_state(state: u32) -> &'static str {
    match state {
        0 => "not_supported",
        1 => "not_started",
        2 => "in_progress",
        3 => "completed",
        _ => "other",
    }
}

/// `NVML_GPU_FABRIC_HEALTH_MASK_*`: two bits each, 1 for what is wrong; lost bandwidth, routes that are repaired or broken,
/// timeouts. From bit 8 on four bits for the configuration: 1 is right, all above are kinds of wrong. From bit 12 on two bits: 2 where
/// the GPU has no partition of the fabric. The summary of `NVML_GPU_FABRIC_HEALTH_SUMMARY_*` is 2 for unhealthy and 3 for limited
/// capacity. `None` where the GPU reports no health at all, as HGX H100 does.
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
    fn a_fabric_is_degraded_when_any_part_of_its_health_says_so() {
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
    fn a_recovery_action_of_a_later_driver_is_no_reset() {
        assert_eq!(recovery_action(4), "drain_and_reset");
        assert_eq!(recovery_action(5), "recover_imex_domain");
        assert_eq!(recovery_action(99), "other");
    }
}
