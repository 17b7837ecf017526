//! Power, its limits, and energy.

use nvml_wrapper::{
    enum_wrappers::device::Sampling,
    enums::device::DeviceArchitecture,
    sys_exports::field_id::{
        NVML_FI_DEV_ENERGY, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT,
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
    },
};
use pulsetrain_semconv::{
    attribute::{GPU_POWER_LIMIT_KIND, GPU_POWER_READING, GPU_POWER_SCOPE},
    metric,
};

use super::super::{
    row::{
        Asked,
        Cadence::{Seldom, Tick},
        FieldValue::{Now, Total},
        Refusal, Row,
        Scope::Part,
    },
    samples,
};
use crate::nvml::reading::{Fixed, Labels, Readings};

/// Milliwatts and millijoules.
const MILLI: f64 = 0.001;

/// The numbers of `NVML_POWER_SCOPE_*`.
const MODULE: u32 = 1;
const MEMORY: u32 = 2;

const AVERAGE: (&str, u32) = ("NVML_FI_DEV_POWER_AVERAGE", NVML_FI_DEV_POWER_AVERAGE);
const INSTANT: (&str, u32) = ("NVML_FI_DEV_POWER_INSTANT", NVML_FI_DEV_POWER_INSTANT);
const ENERGY: (&str, u32) = ("NVML_FI_DEV_ENERGY", NVML_FI_DEV_ENERGY);
const TOTAL_ENERGY: (&str, u32) = (
    "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
);

static GPU_INSTANT: Fixed = &[(&GPU_POWER_SCOPE, "gpu"), (&GPU_POWER_READING, "instant")];
static GPU_AVERAGE: Fixed = &[(&GPU_POWER_SCOPE, "gpu"), (&GPU_POWER_READING, "average")];
static GPU_ENERGY: Fixed = &[(&GPU_POWER_SCOPE, "gpu")];

const OLD: &str = "the driver is older than 530, or the GPU has no power sensor";
const NO_PART: &str = "the sensors do not tell this part apart";
const NO_LIMIT: &str = "the power is not managed";

pub(super) static ROWS: &[Row] = &[
    Row::field(&metric::GPU_POWER, INSTANT, GPU_INSTANT, Now(MILLI), Tick, OLD),
    Row::field(&metric::GPU_POWER, AVERAGE, GPU_AVERAGE, Now(MILLI), Tick, OLD),
    Row::call(
        &metric::GPU_POWER,
        "nvmlDeviceGetPowerUsage",
        Tick,
        "the GPU has no power sensor",
        power_usage,
    )
    .instead_of(AVERAGE.0),
    Row::field(
        &metric::GPU_POWER,
        INSTANT,
        &[(&GPU_POWER_SCOPE, "memory"), (&GPU_POWER_READING, "instant")],
        Now(MILLI),
        Tick,
        NO_PART,
    )
    .scoped(Part(MEMORY)),
    Row::field(
        &metric::GPU_POWER,
        INSTANT,
        &[(&GPU_POWER_SCOPE, "module"), (&GPU_POWER_READING, "instant")],
        Now(MILLI),
        Tick,
        NO_PART,
    )
    .scoped(Part(MODULE)),
    Row::field(
        &metric::GPU_ENERGY,
        TOTAL_ENERGY,
        GPU_ENERGY,
        Total(MILLI),
        Tick,
        "the GPU is older than Volta",
    ),
    Row::call(
        &metric::GPU_ENERGY,
        "nvmlDeviceGetTotalEnergyConsumption",
        Tick,
        "the GPU is older than Volta",
        |gpu, out| {
            let raw = gpu.device.total_energy_consumption()?;
            out.total(&metric::GPU_ENERGY, Labels::fixed(GPU_ENERGY), raw, MILLI);
            Ok(())
        },
    )
    .instead_of(TOTAL_ENERGY.0),
    Row::field(
        &metric::GPU_ENERGY,
        ENERGY,
        &[(&GPU_POWER_SCOPE, "module")],
        Total(MILLI),
        Tick,
        NO_PART,
    )
    .scoped(Part(MODULE)),
    Row::call(
        &metric::GPU_POWER_DISTRIBUTION,
        "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)",
        Tick,
        "the driver keeps no samples",
        drain_power,
    ),
    Row::call(
        &metric::GPU_POWER_LIMIT,
        "nvmlDeviceGetEnforcedPowerLimit",
        Seldom,
        NO_LIMIT,
        |gpu, out| {
            limit(
                out,
                &[(&GPU_POWER_LIMIT_KIND, "enforced")],
                gpu.device.enforced_power_limit()?,
            );
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_POWER_LIMIT,
        "nvmlDeviceGetPowerManagementLimit",
        Seldom,
        NO_LIMIT,
        |gpu, out| {
            let watts = gpu.device.power_management_limit()?;
            limit(out, &[(&GPU_POWER_LIMIT_KIND, "requested")], watts);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_POWER_LIMIT,
        "nvmlDeviceGetPowerManagementDefaultLimit",
        Seldom,
        NO_LIMIT,
        |gpu, out| {
            let watts = gpu.device.power_management_limit_default()?;
            limit(out, &[(&GPU_POWER_LIMIT_KIND, "default")], watts);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_POWER_LIMIT,
        "nvmlDeviceGetPowerManagementLimitConstraints",
        Seldom,
        NO_LIMIT,
        |gpu, out| {
            let limits = gpu.device.power_management_limit_constraints()?;
            limit(out, &[(&GPU_POWER_LIMIT_KIND, "min")], limits.min_limit);
            limit(out, &[(&GPU_POWER_LIMIT_KIND, "max")], limits.max_limit);
            Ok(())
        },
    ),
];

fn limit(out: &mut Readings, kind: Fixed, milliwatts: u32) {
    let watts = f64::from(milliwatts) * MILLI;
    out.now(&metric::GPU_POWER_LIMIT, Labels::fixed(kind), watts);
}

/// One second's average since Ampere, what is drawn at the moment before (`nvml.h`, `nvmlDeviceGetPowerUsage`).
fn power_usage(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
    let watts = f64::from(gpu.device.power_usage()?) * MILLI;
    let instant = matches!(
        gpu.device.architecture()?,
        DeviceArchitecture::Kepler
            | DeviceArchitecture::Maxwell
            | DeviceArchitecture::Pascal
            | DeviceArchitecture::Volta
            | DeviceArchitecture::Turing
    );
    let labels = if instant { GPU_INSTANT } else { GPU_AVERAGE };
    out.now(&metric::GPU_POWER, Labels::fixed(labels), watts);
    Ok(())
}

fn drain_power(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
    let metric = &metric::GPU_POWER_DISTRIBUTION;
    samples::drain(gpu.device, Sampling::Power, &gpu.seen.power, MILLI, metric, out)
}
