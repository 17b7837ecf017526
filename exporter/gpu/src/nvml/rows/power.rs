//! Power, its limits, and energy.

use nvml_wrapper::{
    Device,
    enum_wrappers::device::Sampling,
    sys_exports::field_id::{
        NVML_FI_DEV_ENERGY, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT,
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
    },
};
use pulsetrain_semconv::{
    attribute::{GPU_POWER_LIMIT_KIND, GPU_POWER_READING},
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Tick},
        FieldValue::{Now, Total},
        Measured::{self, Gpu, Module},
        QueryContext, QueryError, Row,
        Scope::Part,
        reason,
    },
    samples,
};
use crate::{
    Reason,
    reading::{Fixed, Labels, Readings},
};

/// The factor from milliwatts to watts, and from millijoules to joules.
const MILLI: f64 = 0.001;

/// The numbers of `NVML_POWER_SCOPE_*`.
const GPU: u32 = 0;
const MODULE: u32 = 1;
const MEMORY: u32 = 2;

const AVERAGE: (&str, u32) = ("NVML_FI_DEV_POWER_AVERAGE", NVML_FI_DEV_POWER_AVERAGE);
const INSTANT: (&str, u32) = ("NVML_FI_DEV_POWER_INSTANT", NVML_FI_DEV_POWER_INSTANT);
const ENERGY: (&str, u32) = ("NVML_FI_DEV_ENERGY", NVML_FI_DEV_ENERGY);
const TOTAL_ENERGY: (&str, u32) = (
    "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
);

static OF_INSTANT: Fixed = &[(&GPU_POWER_READING, "instant")];
static OF_AVERAGE: Fixed = &[(&GPU_POWER_READING, "average")];

/// The id of a field in percent that the bindings do not have (nvml.h of driver 590).
const EDPP_MULTIPLIER: u32 = 274;

const USAGE: &str = "nvmlDeviceGetPowerUsage";

const OLD: &str = "the driver is older than 530, or the GPU has no power sensor";
const NO_SENSOR: &str = "the GPU has no power sensor";
const NO_AVERAGE: &str =
    "the GPU has only an instant value, like an A100 and GPUs before Ampere, or has no power sensor";
const NO_PART: &str = "the GPU has no sensor for this part";
const NO_ENERGY: &str = "the GPU is older than Volta";
const NO_LIMIT: &str = "the power is not managed";

const ENERGY_CALL: &str = "nvmlDeviceGetTotalEnergyConsumption";

/// A row of the power that a field has.
macro_rules! power {
    ($metric:ident, $field:expr, $reading:expr, $absent:expr) => {
        Row::field(&metric::$metric, $field, $reading, Now(MILLI), Tick, $absent)
    };
}

/// A row of the energy that a field has.
macro_rules! energy {
    ($metric:ident, $field:expr, $absent:expr) => {
        Row::field(&metric::$metric, $field, &[], Total(MILLI), Tick, $absent)
    };
}

pub(super) static ROWS: &[Row] = &[
    // The best reading comes first: one series per GPU.
    power!(GPU_POWER, INSTANT, OF_INSTANT, OLD).measuring(Gpu),
    power!(GPU_POWER, AVERAGE, OF_AVERAGE, OLD)
        .instead_of(INSTANT.0)
        .measuring(Gpu),
    Row::call(&metric::GPU_POWER, USAGE, Tick, NO_SENSOR, power_usage)
        .instead_of(AVERAGE.0)
        .measuring(Gpu),
    power!(GPU_AVERAGE_POWER, AVERAGE, &[], NO_AVERAGE).measuring(Gpu),
    Row::value(
        &metric::GPU_AVERAGE_POWER,
        &[],
        USAGE,
        Tick,
        NO_AVERAGE,
        average_power_usage,
    )
    .instead_of(AVERAGE.0)
    .measuring(Gpu),
    // The driver has no instantaneous reading for the memory.
    power!(GPU_MEMORY_POWER, AVERAGE, OF_AVERAGE, NO_PART).scoped(Part(MEMORY)),
    power!(GPU_MODULE_POWER, INSTANT, OF_INSTANT, NO_PART).scoped(Part(MODULE)),
    power!(GPU_MODULE_POWER, AVERAGE, OF_AVERAGE, NO_PART)
        .scoped(Part(MODULE))
        .instead_of(INSTANT.0),
    energy!(GPU_ENERGY, TOTAL_ENERGY, NO_ENERGY).measuring(Gpu),
    Row::call(&metric::GPU_ENERGY, ENERGY_CALL, Tick, NO_ENERGY, |gpu, out| {
        let raw = gpu.device.total_energy_consumption()?;
        out.total(&metric::GPU_ENERGY, Labels::default(), raw, MILLI);
        Ok(())
    })
    .instead_of(TOTAL_ENERGY.0)
    .measuring(Gpu),
    energy!(GPU_MODULE_ENERGY, ENERGY, NO_PART).scoped(Part(MODULE)),
    energy!(GPU_MODULE_ENERGY, TOTAL_ENERGY, NO_PART)
        .instead_of(ENERGY.0)
        .measuring(Module),
    Row::call(
        &metric::GPU_POWER_DISTRIBUTION,
        "nvmlDeviceGetSamples(NVML_TOTAL_POWER_SAMPLES)",
        Tick,
        "the driver keeps no samples",
        drain_power,
    )
    .measuring(Gpu),
    Row::value(
        &metric::GPU_POWER_LIMIT,
        &[(&GPU_POWER_LIMIT_KIND, "enforced")],
        "nvmlDeviceGetEnforcedPowerLimit",
        Infrequent,
        NO_LIMIT,
        |gpu| Ok(f64::from(gpu.device.enforced_power_limit()?) * MILLI),
    ),
    Row::field(
        &metric::GPU_EDPP_RATIO,
        ("NVML_FI_DEV_EDPP_MULTIPLIER", EDPP_MULTIPLIER),
        &[],
        Now(0.01),
        Infrequent,
        "the driver is older than 590, or the GPU has no EDPp",
    ),
    Row::value(
        &metric::GPU_POWER_LIMIT,
        &[(&GPU_POWER_LIMIT_KIND, "requested")],
        "nvmlDeviceGetPowerManagementLimit",
        Infrequent,
        NO_LIMIT,
        |gpu| Ok(f64::from(gpu.device.power_management_limit()?) * MILLI),
    ),
    Row::value(
        &metric::GPU_POWER_LIMIT,
        &[(&GPU_POWER_LIMIT_KIND, "default")],
        "nvmlDeviceGetPowerManagementDefaultLimit",
        Infrequent,
        NO_LIMIT,
        |gpu| Ok(f64::from(gpu.device.power_management_limit_default()?) * MILLI),
    ),
    Row::call(
        &metric::GPU_POWER_LIMIT,
        "nvmlDeviceGetPowerManagementLimitConstraints",
        Infrequent,
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

fn power_usage(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let watts = f64::from(gpu.device.power_usage()?) * MILLI;
    let reading = if usage_is_average(gpu)? {
        OF_AVERAGE
    } else {
        OF_INSTANT
    };
    out.now(&metric::GPU_POWER, Labels::fixed(reading), watts);
    Ok(())
}

fn average_power_usage(gpu: &QueryContext<'_, '_>) -> Result<f64, QueryError> {
    if !usage_is_average(gpu)? {
        return Err(QueryError::Because(Reason::NotSupported));
    }
    Ok(f64::from(gpu.device.power_usage()?) * MILLI)
}

/// Returns whether `nvmlDeviceGetPowerUsage` reads the average of one second (`nvml.h`): Ampere and later, but not GA100, the
/// chip of the A100 and the A30.
fn usage_is_average(gpu: &QueryContext<'_, '_>) -> Result<bool, QueryError> {
    let capability = gpu.device.cuda_compute_capability()?;
    Ok((capability.major, capability.minor) > (8, 0))
}

/// Returns the part that the sensors of a GPU measure. This is the module if the driver does not support the power of the GPU but
/// has that of the module, as on GH200. The energy counter then measures the module as well.
pub(in crate::nvml) fn measured(device: &Device<'_>) -> Measured {
    let mut power = [ffi::field(INSTANT.1, GPU), ffi::field(INSTANT.1, MODULE)];
    let asked = ffi::field_values(device, &mut power);
    let [gpu, module] = power.map(|cell| ffi::field_answer(&cell).map_err(|error| reason(&error)));
    match (asked, gpu, module) {
        (Ok(()), Err(Reason::NotSupported), Ok(_)) => Module,
        _ => Gpu,
    }
}

fn drain_power(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let metric = &metric::GPU_POWER_DISTRIBUTION;
    samples::drain(gpu.device, Sampling::Power, &gpu.seen.power, MILLI, metric, out)
}
