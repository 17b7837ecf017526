//! What has gone wrong in memory, and what was done about it; XID errors, which the driver tells of by itself.

use nvml_wrapper::{
    enum_wrappers::device::{EccCounter, MemoryError, MemoryLocation},
    sys_exports::field_id::*,
};
use pulsetrain_semconv::{
    attribute::{
        GPU_ECC_LIFETIME, GPU_ECC_LOCATION, GPU_ECC_SEVERITY, GPU_RETIREMENT_CAUSE,
        GPU_ROW_REMAP_AVAILABILITY,
    },
    metric,
};

use super::super::{
    ffi,
    row::{
        Asked,
        Cadence::{Seldom, Tick},
        FieldValue::Total,
        Read, Refusal, Row,
    },
};
use crate::nvml::reading::{Fixed, Labels, Readings};

const NO_ECC: &str = "the memory does not correct errors, or that is turned off";
const NO_PLACE: &str = "the GPU does not count errors in this place";
const NO_RETIRING: &str = "the GPU remaps rows instead, or does neither";
const NO_REMAPPING: &str = "the GPU is older than Ampere, or has no ECC memory";

/// A row of errors by what became of the data, since when, and where.
macro_rules! ecc {
    ($severity:literal, $lifetime:literal, $location:literal, $field:ident, $absent:expr) => {
        Row::field(
            &metric::GPU_ECC_ERRORS,
            (stringify!($field), $field),
            &[
                (&GPU_ECC_SEVERITY, $severity),
                (&GPU_ECC_LIFETIME, $lifetime),
                (&GPU_ECC_LOCATION, $location),
            ],
            Total(1.0),
            Seldom,
            $absent,
        )
    };
}

/// A row of errors in a place that has no field.
macro_rules! place {
    ($severity:literal, $error:ident, $lifetime:literal, $counter:ident, $location:literal, $place:ident) => {
        Row::call(
            &metric::GPU_ECC_ERRORS,
            "nvmlDeviceGetMemoryErrorCounter",
            Seldom,
            NO_PLACE,
            |gpu, out| {
                let count = gpu.device.memory_error_counter(
                    MemoryError::$error,
                    EccCounter::$counter,
                    MemoryLocation::$place,
                )?;
                let labels: Fixed = &[
                    (&GPU_ECC_SEVERITY, $severity),
                    (&GPU_ECC_LIFETIME, $lifetime),
                    (&GPU_ECC_LOCATION, $location),
                ];
                out.total(&metric::GPU_ECC_ERRORS, Labels::fixed(labels), count, 1.0);
                Ok(())
            },
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    ecc!(
        "corrected",
        "volatile",
        "total",
        NVML_FI_DEV_ECC_SBE_VOL_TOTAL,
        NO_ECC
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "total",
        NVML_FI_DEV_ECC_DBE_VOL_TOTAL,
        NO_ECC
    ),
    ecc!(
        "corrected",
        "aggregate",
        "total",
        NVML_FI_DEV_ECC_SBE_AGG_TOTAL,
        NO_ECC
    ),
    ecc!(
        "uncorrected",
        "aggregate",
        "total",
        NVML_FI_DEV_ECC_DBE_AGG_TOTAL,
        NO_ECC
    ),
    ecc!(
        "corrected",
        "volatile",
        "dram",
        NVML_FI_DEV_ECC_SBE_VOL_DEV,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "dram",
        NVML_FI_DEV_ECC_DBE_VOL_DEV,
        NO_PLACE
    ),
    ecc!(
        "corrected",
        "aggregate",
        "dram",
        NVML_FI_DEV_ECC_SBE_AGG_DEV,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "aggregate",
        "dram",
        NVML_FI_DEV_ECC_DBE_AGG_DEV,
        NO_PLACE
    ),
    place!("corrected", Corrected, "volatile", Volatile, "sram", SRAM),
    place!("uncorrected", Uncorrected, "volatile", Volatile, "sram", SRAM),
    place!("corrected", Corrected, "aggregate", Aggregate, "sram", SRAM),
    ecc!(
        "corrected",
        "volatile",
        "l1",
        NVML_FI_DEV_ECC_SBE_VOL_L1,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "l1",
        NVML_FI_DEV_ECC_DBE_VOL_L1,
        NO_PLACE
    ),
    ecc!(
        "corrected",
        "volatile",
        "l2",
        NVML_FI_DEV_ECC_SBE_VOL_L2,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "l2",
        NVML_FI_DEV_ECC_DBE_VOL_L2,
        NO_PLACE
    ),
    ecc!(
        "corrected",
        "volatile",
        "register_file",
        NVML_FI_DEV_ECC_SBE_VOL_REG,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "register_file",
        NVML_FI_DEV_ECC_DBE_VOL_REG,
        NO_PLACE
    ),
    ecc!(
        "corrected",
        "volatile",
        "texture",
        NVML_FI_DEV_ECC_SBE_VOL_TEX,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "texture",
        NVML_FI_DEV_ECC_DBE_VOL_TEX,
        NO_PLACE
    ),
    ecc!(
        "uncorrected",
        "volatile",
        "cbu",
        NVML_FI_DEV_ECC_DBE_VOL_CBU,
        NO_PLACE
    ),
    Row::call(
        &metric::GPU_ECC_ERRORS,
        "nvmlDeviceGetSramEccErrorStatus",
        Seldom,
        NO_PLACE,
        sram,
    ),
    Row::field(
        &metric::GPU_RETIRED_PAGES,
        ("NVML_FI_DEV_RETIRED_SBE", NVML_FI_DEV_RETIRED_SBE),
        &[(&GPU_RETIREMENT_CAUSE, "multiple_single_bit")],
        Total(1.0),
        Seldom,
        NO_RETIRING,
    ),
    Row::field(
        &metric::GPU_RETIRED_PAGES,
        ("NVML_FI_DEV_RETIRED_DBE", NVML_FI_DEV_RETIRED_DBE),
        &[(&GPU_RETIREMENT_CAUSE, "double_bit")],
        Total(1.0),
        Seldom,
        NO_RETIRING,
    ),
    Row::field(
        &metric::GPU_REMAPPED_ROWS,
        ("NVML_FI_DEV_REMAPPED_COR", NVML_FI_DEV_REMAPPED_COR),
        &[(&GPU_ECC_SEVERITY, "corrected")],
        Total(1.0),
        Seldom,
        NO_REMAPPING,
    ),
    Row::field(
        &metric::GPU_REMAPPED_ROWS,
        ("NVML_FI_DEV_REMAPPED_UNC", NVML_FI_DEV_REMAPPED_UNC),
        &[(&GPU_ECC_SEVERITY, "uncorrected")],
        Total(1.0),
        Seldom,
        NO_REMAPPING,
    ),
    Row::call(
        &metric::GPU_ROW_REMAP_BANKS,
        "nvmlDeviceGetRowRemapperHistogram",
        Seldom,
        NO_REMAPPING,
        banks,
    ),
    Row {
        metric: &metric::GPU_XID_ERRORS,
        also: &[],
        call: "nvmlEventTypeXidCriticalError",
        cadence: Tick,
        absent: "the driver tells of no events here (WSL, some vGPUs)",
        instead_of: None,
        read: Read::Event,
    },
];

fn sram(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
    /// A place of the on-chip memory, with its count.
    macro_rules! bucket {
        ($location:literal, $count:expr) => {
            let labels: Fixed = &[
                (&GPU_ECC_SEVERITY, "uncorrected"),
                (&GPU_ECC_LIFETIME, "aggregate"),
                (&GPU_ECC_LOCATION, $location),
            ];
            out.total(&metric::GPU_ECC_ERRORS, Labels::fixed(labels), $count, 1.0);
        };
    }
    let errors = ffi::sram_errors(gpu.device)?;
    bucket!("sram", errors.aggregateUncParity + errors.aggregateUncSecDed);
    bucket!("l2", errors.aggregateUncBucketL2);
    bucket!("pcie", errors.aggregateUncBucketPcie);
    bucket!("microcontroller", errors.aggregateUncBucketMcu);
    bucket!("other", errors.aggregateUncBucketOther);
    Ok(())
}

fn banks(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
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
