//! Memory errors and their repair; XID errors, which are events of the driver.

use nvml_wrapper::{
    enum_wrappers::device::{EccCounter, MemoryError, MemoryLocation},
    sys_exports::field_id::*,
};
use pulsetrain_semconv::{
    attribute::{GPU_ECC_LOCATION, GPU_ECC_SEVERITY, GPU_RETIREMENT_CAUSE, GPU_ROW_REMAP_AVAILABILITY},
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Tick},
        FieldValue::{Now, Total},
        QueryContext, QueryError, Read, Row,
    },
};
use crate::reading::{Fixed, Labels, Readings};

/// Fields that the bindings do not have (nvml.h of driver 615).
const NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE: u32 = 301;
const NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE: u32 = 302;

const MEMORY_ERRORS: &str = "nvmlDeviceGetMemoryErrorCounter";

const NO_ECC: &str = "the memory does not correct errors, or that is turned off";
const NO_PLACE: &str = "the GPU does not count errors in this place";
const NO_RETIRING: &str = "the GPU remaps rows instead of retiring pages, or does neither";
const NO_REMAPPING: &str = "the GPU is older than Ampere or is split, or has no ECC memory";

/// A row of errors by severity.
macro_rules! ecc {
    ($metric:ident, $severity:literal, $field:ident) => {
        Row::field(
            &metric::$metric,
            (stringify!($field), $field),
            &[(&GPU_ECC_SEVERITY, $severity)],
            Total(1.0),
            Infrequent,
            NO_ECC,
        )
    };
}

/// A row of errors by severity and location.
macro_rules! location {
    ($metric:ident, $severity:literal, $location:literal, $field:ident) => {
        Row::field(
            &metric::$metric,
            (stringify!($field), $field),
            &[(&GPU_ECC_SEVERITY, $severity), (&GPU_ECC_LOCATION, $location)],
            Total(1.0),
            Infrequent,
            NO_PLACE,
        )
    };
}

/// A row of errors in the memory outside of the chip.
macro_rules! dram {
    ($severity:literal, $field:ident) => {
        location!(GPU_ECC_LOCATION_ERRORS, $severity, "dram", $field)
    };
}

/// A row of errors in the memory outside of the chip, over its lifetime.
macro_rules! lifetime_dram {
    ($severity:literal, $field:ident) => {
        location!(GPU_ECC_LIFETIME_LOCATION_ERRORS, $severity, "dram", $field)
    };
}

/// A row of errors in a part of the on-chip memory, of GPUs that do not count all of it.
macro_rules! part_of_sram {
    ($severity:literal, $location:literal, $field:ident) => {
        location!(GPU_ECC_LOCATION_ERRORS, $severity, $location, $field).instead_of(MEMORY_ERRORS)
    };
}

/// A row of errors in the on-chip memory, which has no field.
macro_rules! sram {
    ($metric:ident, $severity:literal, $error:ident, $counter:ident) => {
        Row::call(
            &metric::$metric,
            MEMORY_ERRORS,
            Infrequent,
            NO_PLACE,
            |gpu, out| {
                let count = gpu.device.memory_error_counter(
                    MemoryError::$error,
                    EccCounter::$counter,
                    MemoryLocation::SRAM,
                )?;
                let labels: Fixed = &[(&GPU_ECC_SEVERITY, $severity), (&GPU_ECC_LOCATION, "sram")];
                out.total(&metric::$metric, Labels::fixed(labels), count, 1.0);
                Ok(())
            },
        )
    };
}

/// A row of remapped rows that become active with a reset.
macro_rules! inactive {
    ($severity:literal, $field:ident) => {
        Row::field(
            &metric::GPU_INACTIVE_REMAPPED_ROWS,
            (stringify!($field), $field),
            &[(&GPU_ECC_SEVERITY, $severity)],
            Now(1.0),
            Infrequent,
            "the GPU does not remap rows, or its driver is older than 610",
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    ecc!(GPU_ECC_ERRORS, "corrected", NVML_FI_DEV_ECC_SBE_VOL_TOTAL),
    ecc!(GPU_ECC_ERRORS, "uncorrected", NVML_FI_DEV_ECC_DBE_VOL_TOTAL),
    ecc!(
        GPU_ECC_LIFETIME_ERRORS,
        "corrected",
        NVML_FI_DEV_ECC_SBE_AGG_TOTAL
    ),
    ecc!(
        GPU_ECC_LIFETIME_ERRORS,
        "uncorrected",
        NVML_FI_DEV_ECC_DBE_AGG_TOTAL
    ),
    dram!("corrected", NVML_FI_DEV_ECC_SBE_VOL_DEV),
    dram!("uncorrected", NVML_FI_DEV_ECC_DBE_VOL_DEV),
    sram!(GPU_ECC_LOCATION_ERRORS, "corrected", Corrected, Volatile),
    sram!(GPU_ECC_LOCATION_ERRORS, "uncorrected", Uncorrected, Volatile),
    part_of_sram!("corrected", "l1", NVML_FI_DEV_ECC_SBE_VOL_L1),
    part_of_sram!("uncorrected", "l1", NVML_FI_DEV_ECC_DBE_VOL_L1),
    part_of_sram!("corrected", "l2", NVML_FI_DEV_ECC_SBE_VOL_L2),
    part_of_sram!("uncorrected", "l2", NVML_FI_DEV_ECC_DBE_VOL_L2),
    part_of_sram!("corrected", "register_file", NVML_FI_DEV_ECC_SBE_VOL_REG),
    part_of_sram!("uncorrected", "register_file", NVML_FI_DEV_ECC_DBE_VOL_REG),
    part_of_sram!("corrected", "texture", NVML_FI_DEV_ECC_SBE_VOL_TEX),
    part_of_sram!("uncorrected", "texture", NVML_FI_DEV_ECC_DBE_VOL_TEX),
    part_of_sram!("uncorrected", "cbu", NVML_FI_DEV_ECC_DBE_VOL_CBU),
    lifetime_dram!("corrected", NVML_FI_DEV_ECC_SBE_AGG_DEV),
    lifetime_dram!("uncorrected", NVML_FI_DEV_ECC_DBE_AGG_DEV),
    sram!(
        GPU_ECC_LIFETIME_LOCATION_ERRORS,
        "corrected",
        Corrected,
        Aggregate
    ),
    Row::call(
        &metric::GPU_ECC_LIFETIME_SRAM_ERRORS,
        "nvmlDeviceGetSramEccErrorStatus",
        Infrequent,
        NO_PLACE,
        uncorrected_sram,
    )
    .also(&[&metric::GPU_ECC_LIFETIME_LOCATION_ERRORS]),
    Row::field(
        &metric::GPU_RETIRED_PAGES,
        ("NVML_FI_DEV_RETIRED_SBE", NVML_FI_DEV_RETIRED_SBE),
        &[(&GPU_RETIREMENT_CAUSE, "multiple_single_bit")],
        Total(1.0),
        Infrequent,
        NO_RETIRING,
    ),
    Row::field(
        &metric::GPU_RETIRED_PAGES,
        ("NVML_FI_DEV_RETIRED_DBE", NVML_FI_DEV_RETIRED_DBE),
        &[(&GPU_RETIREMENT_CAUSE, "double_bit")],
        Total(1.0),
        Infrequent,
        NO_RETIRING,
    ),
    Row::field(
        &metric::GPU_REMAPPED_ROWS,
        ("NVML_FI_DEV_REMAPPED_COR", NVML_FI_DEV_REMAPPED_COR),
        &[(&GPU_ECC_SEVERITY, "corrected")],
        Total(1.0),
        Infrequent,
        NO_REMAPPING,
    ),
    Row::field(
        &metric::GPU_REMAPPED_ROWS,
        ("NVML_FI_DEV_REMAPPED_UNC", NVML_FI_DEV_REMAPPED_UNC),
        &[(&GPU_ECC_SEVERITY, "uncorrected")],
        Total(1.0),
        Infrequent,
        NO_REMAPPING,
    ),
    inactive!("corrected", NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE),
    inactive!("uncorrected", NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE),
    Row::call(
        &metric::GPU_ROW_REMAP_BANKS,
        "nvmlDeviceGetRowRemapperHistogram",
        Infrequent,
        NO_REMAPPING,
        banks,
    ),
    Row::new(
        &metric::GPU_XID_ERRORS,
        "nvmlEventTypeXidCriticalError",
        Tick,
        "the driver has no events here (WSL, some vGPUs)",
        Read::Event,
    ),
    Row::new(
        &metric::GPU_DRIVER_EVENTS,
        "nvmlEventSetWait_v2",
        Tick,
        "the driver reports XID errors only, or no events",
        Read::Event,
    ),
];

fn uncorrected_sram(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    const UNITS: [Fixed; 5] = [
        &[(&GPU_ECC_LOCATION, "l2")],
        &[(&GPU_ECC_LOCATION, "sm")],
        &[(&GPU_ECC_LOCATION, "pcie")],
        &[(&GPU_ECC_LOCATION, "microcontroller")],
        &[(&GPU_ECC_LOCATION, "other")],
    ];
    let errors = ffi::sram_errors(gpu.device)?;
    let sram: Fixed = &[(&GPU_ECC_SEVERITY, "uncorrected"), (&GPU_ECC_LOCATION, "sram")];
    let all = errors.aggregateUncParity + errors.aggregateUncSecDed;
    out.total(
        &metric::GPU_ECC_LIFETIME_LOCATION_ERRORS,
        Labels::fixed(sram),
        all,
        1.0,
    );
    let counts = [
        errors.aggregateUncBucketL2,
        errors.aggregateUncBucketSm,
        errors.aggregateUncBucketPcie,
        errors.aggregateUncBucketMcu,
        errors.aggregateUncBucketOther,
    ];
    for (unit, count) in UNITS.into_iter().zip(counts) {
        out.total(
            &metric::GPU_ECC_LIFETIME_SRAM_ERRORS,
            Labels::fixed(unit),
            count,
            1.0,
        );
    }
    Ok(())
}

fn banks(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    const LEFT: [Fixed; 5] = [
        &[(&GPU_ROW_REMAP_AVAILABILITY, "max")],
        &[(&GPU_ROW_REMAP_AVAILABILITY, "high")],
        &[(&GPU_ROW_REMAP_AVAILABILITY, "partial")],
        &[(&GPU_ROW_REMAP_AVAILABILITY, "low")],
        &[(&GPU_ROW_REMAP_AVAILABILITY, "none")],
    ];
    let banks = ffi::row_remapper_histogram(gpu.device)?;
    for (left, banks) in LEFT.into_iter().zip(banks) {
        out.now(
            &metric::GPU_ROW_REMAP_BANKS,
            Labels::fixed(left),
            f64::from(banks),
        );
    }
    Ok(())
}
