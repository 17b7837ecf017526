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
    reading::{Fixed, Labels, Readings},
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

pub(super) static ROWS: &[Row] = &[
    Row::call(
        &metric::GPU_TEMPERATURE,
        "nvmlDeviceGetTemperatureV",
        Tick,
        "the GPU has no temperature sensor",
        |gpu, out| {
            let degrees = f64::from(ffi::temperature(gpu.device)?);
            let labels = Labels::fixed(&[(&GPU_TEMPERATURE_SENSOR, "gpu")]);
            out.now(&metric::GPU_TEMPERATURE, labels, degrees);
            Ok(())
        },
    ),
    Row::field(
        &metric::GPU_TEMPERATURE,
        ("NVML_FI_DEV_MEMORY_TEMP", NVML_FI_DEV_MEMORY_TEMP),
        &[(&GPU_TEMPERATURE_SENSOR, "memory")],
        Now(1.0),
        Tick,
        "the memory has no temperature sensor",
    ),
    Row::call(
        &metric::GPU_TEMPERATURE_MARGIN,
        "nvmlDeviceGetMarginTemperature",
        Tick,
        NO_MARGIN,
        |gpu, out| {
            let degrees = f64::from(ffi::margin_temperature(gpu.device)?);
            out.now(&metric::GPU_TEMPERATURE_MARGIN, Labels::default(), degrees);
            Ok(())
        },
    ),
    margin_limit!("shutdown", NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT),
    margin_limit!("slowdown", NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT),
    margin_limit!("memory_max", NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT),
    margin_limit!("gpu_max", NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT),
    limit(|gpu, out| {
        let kind: Fixed = &[(&GPU_TEMPERATURE_LIMIT_KIND, "slowdown")];
        threshold(gpu, TemperatureThreshold::Slowdown, kind, out)
    }),
    limit(|gpu, out| {
        let kind: Fixed = &[(&GPU_TEMPERATURE_LIMIT_KIND, "shutdown")];
        threshold(gpu, TemperatureThreshold::Shutdown, kind, out)
    }),
    limit(|gpu, out| {
        let kind: Fixed = &[(&GPU_TEMPERATURE_LIMIT_KIND, "gpu_max")];
        threshold(gpu, TemperatureThreshold::GpuMax, kind, out)
    }),
    limit(|gpu, out| {
        let kind: Fixed = &[(&GPU_TEMPERATURE_LIMIT_KIND, "memory_max")];
        threshold(gpu, TemperatureThreshold::MemoryMax, kind, out)
    }),
    limit(|gpu, out| {
        let kind: Fixed = &[(&GPU_TEMPERATURE_LIMIT_KIND, "acoustic")];
        threshold(gpu, TemperatureThreshold::AcousticCurr, kind, out)
    }),
    Row::call(
        &metric::GPU_FAN_SPEED_RATIO,
        "nvmlDeviceGetFanSpeed_v2",
        Tick,
        NO_FAN,
        |gpu, out| {
            each_fan(gpu, |fan| {
                let share = f64::from(gpu.device.fan_speed(fan)?) / 100.0;
                out.now(&metric::GPU_FAN_SPEED_RATIO, of_fan(fan), share);
                Ok(())
            })
        },
    ),
    Row::call(
        &metric::GPU_FAN_SPEED,
        "nvmlDeviceGetFanSpeedRPM",
        Infrequent,
        NO_FAN,
        |gpu, out| {
            each_fan(gpu, |fan| {
                let per_second = f64::from(gpu.device.fan_speed_rpm(fan)?) / 60.0;
                out.now(&metric::GPU_FAN_SPEED, of_fan(fan), per_second);
                Ok(())
            })
        },
    ),
    Row::call(
        &metric::GPU_FAN_TARGET_RATIO,
        "nvmlDeviceGetTargetFanSpeed",
        Infrequent,
        NO_FAN,
        |gpu, out| {
            each_fan(gpu, |fan| {
                let share = f64::from(ffi::target_fan_speed(gpu.device, fan)?) / 100.0;
                out.now(&metric::GPU_FAN_TARGET_RATIO, of_fan(fan), share);
                Ok(())
            })
        },
    ),
];

/// A row of one threshold.
const fn limit(read: fn(&QueryContext<'_, '_>, &mut Readings) -> Result<(), QueryError>) -> Row {
    Row::call(
        &metric::GPU_TEMPERATURE_LIMIT,
        "nvmlDeviceGetTemperatureThreshold",
        Once,
        "the GPU has no such threshold",
        read,
    )
}

fn threshold(
    gpu: &QueryContext<'_, '_>,
    threshold: TemperatureThreshold,
    kind: Fixed,
    out: &mut Readings,
) -> Result<(), QueryError> {
    let degrees = f64::from(gpu.device.temperature_threshold(threshold)?);
    out.now(&metric::GPU_TEMPERATURE_LIMIT, Labels::fixed(kind), degrees);
    Ok(())
}

fn each_fan(
    gpu: &QueryContext<'_, '_>,
    mut read: impl FnMut(u32) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    if gpu.fans == 0 {
        return Err(QueryError::Because(Reason::NotSupported));
    }
    (0..gpu.fans).try_for_each(&mut read)
}

fn of_fan(fan: u32) -> Labels {
    Labels::numbered(&[], &GPU_FAN_INDEX, fan)
}
