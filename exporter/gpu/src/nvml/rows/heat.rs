//! Temperatures, their limits, and fans.

use nvml_wrapper::{
    enum_wrappers::device::TemperatureThreshold,
    sys_exports::field_id::{
        NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT,
        NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT, NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
        NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
    },
};
use pulsetrain_semconv::{
    Metric,
    attribute::{GPU_FAN_INDEX, GPU_TEMPERATURE_LIMIT_KIND, GPU_TEMPERATURE_SENSOR},
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Once, Tick},
        FieldValue::Now,
        QueryContext, QueryError, Row,
    },
};
use crate::{
    Reason,
    reading::{Labels, Readings},
};

const NO_FAN: &str = "the GPU has no fan of its own: the server cools it";
const NO_MARGIN: &str = "the GPU is older than Ada, or its driver";

/// A row of the margin of a limit; such margins have replaced thresholds with Ada.
macro_rules! margin_limit {
    ($kind:literal, $field:ident) => {
        Row::field(
            &metric::GPU_TEMPERATURE_MARGIN_LIMIT,
            (stringify!($field), $field),
            &[(&GPU_TEMPERATURE_LIMIT_KIND, $kind)],
            Now(1.0),
            Once,
            NO_MARGIN,
        )
    };
}

/// A row of one threshold.
macro_rules! limit {
    ($kind:literal, $threshold:ident) => {
        Row::value(
            &metric::GPU_TEMPERATURE_LIMIT,
            &[(&GPU_TEMPERATURE_LIMIT_KIND, $kind)],
            "nvmlDeviceGetTemperatureThreshold",
            Once,
            "the GPU has no such threshold",
            |gpu| {
                let threshold = TemperatureThreshold::$threshold;
                Ok(gpu.device.temperature_threshold(threshold)?.into())
            },
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    Row::value(
        &metric::GPU_TEMPERATURE,
        &[(&GPU_TEMPERATURE_SENSOR, "gpu")],
        "nvmlDeviceGetTemperatureV",
        Tick,
        "the GPU has no temperature sensor",
        |gpu| Ok(ffi::temperature(gpu.device)?.into()),
    ),
    Row::field(
        &metric::GPU_TEMPERATURE,
        ("NVML_FI_DEV_MEMORY_TEMP", NVML_FI_DEV_MEMORY_TEMP),
        &[(&GPU_TEMPERATURE_SENSOR, "memory")],
        Now(1.0),
        Tick,
        "the memory has no temperature sensor",
    ),
    Row::value(
        &metric::GPU_TEMPERATURE_MARGIN,
        &[],
        "nvmlDeviceGetMarginTemperature",
        Tick,
        NO_MARGIN,
        |gpu| Ok(ffi::margin_temperature(gpu.device)?.into()),
    ),
    margin_limit!("shutdown", NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT),
    margin_limit!("slowdown", NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT),
    margin_limit!("memory_max", NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT),
    margin_limit!("gpu_max", NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT),
    limit!("slowdown", Slowdown),
    limit!("shutdown", Shutdown),
    limit!("gpu_max", GpuMax),
    limit!("memory_max", MemoryMax),
    limit!("acoustic", AcousticCurr),
    Row::call(
        &metric::GPU_FAN_SPEED_RATIO,
        "nvmlDeviceGetFanSpeed_v2",
        Tick,
        NO_FAN,
        |gpu, out| {
            each_fan(gpu, out, &metric::GPU_FAN_SPEED_RATIO, |fan| {
                Ok(f64::from(gpu.device.fan_speed(fan)?) / 100.0)
            })
        },
    ),
    Row::call(
        &metric::GPU_FAN_SPEED,
        "nvmlDeviceGetFanSpeedRPM",
        Infrequent,
        NO_FAN,
        |gpu, out| {
            // Revolutions per second.
            each_fan(gpu, out, &metric::GPU_FAN_SPEED, |fan| {
                Ok(f64::from(gpu.device.fan_speed_rpm(fan)?) / 60.0)
            })
        },
    ),
    Row::call(
        &metric::GPU_FAN_TARGET_RATIO,
        "nvmlDeviceGetTargetFanSpeed",
        Infrequent,
        NO_FAN,
        |gpu, out| {
            each_fan(gpu, out, &metric::GPU_FAN_TARGET_RATIO, |fan| {
                Ok(f64::from(ffi::target_fan_speed(gpu.device, fan)?) / 100.0)
            })
        },
    ),
];

fn each_fan(
    gpu: &QueryContext<'_, '_>,
    out: &mut Readings,
    metric: &'static Metric,
    read: impl Fn(u32) -> Result<f64, QueryError>,
) -> Result<(), QueryError> {
    if gpu.fans == 0 {
        return Err(QueryError::Because(Reason::NotSupported));
    }
    for fan in 0..gpu.fans {
        let value = read(fan)?;
        out.now(metric, Labels::numbered(&[], &GPU_FAN_INDEX, fan), value);
    }
    Ok(())
}
