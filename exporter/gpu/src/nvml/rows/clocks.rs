//! Clocks, their limits, and the reasons for low clocks.

use nvml_wrapper::{
    enum_wrappers::device::Clock,
    sys_exports::field_id::{
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
        NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION,
        NVML_FI_DEV_PERF_POLICY_POWER, NVML_FI_DEV_PERF_POLICY_RELIABILITY,
        NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, NVML_FI_DEV_PERF_POLICY_THERMAL,
        NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS,
    },
};
use pulsetrain_semconv::{
    attribute::{GPU_CLOCK_DOMAIN, GPU_CLOCK_LIMIT_KIND, GPU_THROTTLE_REASON},
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Tick},
        FieldValue, QueryContext, QueryError, Row,
    },
};
use crate::reading::{Fixed, Readings};

/// The factor from megahertz to hertz.
const MEGA: f64 = 1e6;
/// The counters of the driver are in nanoseconds.
const NANO: f64 = 1e-9;

/// The bits of `nvmlClocksEventReason*`; the last two are of driver 615.
const REASONS: [(u64, Fixed); 11] = [
    (0x001, &[(&GPU_THROTTLE_REASON, "idle")]),
    (0x002, &[(&GPU_THROTTLE_REASON, "applications_clocks_setting")]),
    (0x004, &[(&GPU_THROTTLE_REASON, "sw_power_cap")]),
    (0x008, &[(&GPU_THROTTLE_REASON, "hw_slowdown")]),
    (0x010, &[(&GPU_THROTTLE_REASON, "sync_boost")]),
    (0x020, &[(&GPU_THROTTLE_REASON, "sw_thermal_slowdown")]),
    (0x040, &[(&GPU_THROTTLE_REASON, "hw_thermal_slowdown")]),
    (0x080, &[(&GPU_THROTTLE_REASON, "hw_power_brake_slowdown")]),
    (0x100, &[(&GPU_THROTTLE_REASON, "display_clock_setting")]),
    (0x200, &[(&GPU_THROTTLE_REASON, "board_limit")]),
    (0x400, &[(&GPU_THROTTLE_REASON, "reliability")]),
];

const NO_CLOCK: &str = "the GPU does not report this clock";
const NO_SETTING: &str = "clocks cannot be set for applications";
const NO_COUNTER: &str = "the driver does not count the time for this reason";

/// A row of the frequency of a clock.
macro_rules! clock {
    ($domain:literal, $clock:ident) => {
        Row::value(
            &metric::GPU_CLOCK_FREQUENCY,
            &[(&GPU_CLOCK_DOMAIN, $domain)],
            "nvmlDeviceGetClockInfo",
            Tick,
            NO_CLOCK,
            |gpu| Ok(f64::from(gpu.device.clock_info(Clock::$clock)?) * MEGA),
        )
    };
}

/// A row of a limit of a clock, by its kind.
macro_rules! limit {
    ($domain:literal, $clock:ident, max) => {
        limit!(@ $domain, $clock, "max", "nvmlDeviceGetMaxClockInfo", max_clock_info, NO_CLOCK)
    };
    ($domain:literal, $clock:ident, application) => {
        limit!(@ $domain, $clock, "application",
            "nvmlDeviceGetApplicationsClock", applications_clock, NO_SETTING)
    };
    ($domain:literal, $clock:ident, default_application) => {
        limit!(@ $domain, $clock, "default_application",
            "nvmlDeviceGetDefaultApplicationsClock", default_applications_clock, NO_SETTING)
    };
    ($domain:literal, $clock:ident, customer_boost) => {
        limit!(@ $domain, $clock, "customer_boost",
            "nvmlDeviceGetMaxCustomerBoostClock", max_customer_boost_clock, NO_SETTING)
    };
    (@ $domain:literal, $clock:ident, $kind:literal, $call:literal, $method:ident, $absent:expr) => {
        Row::value(
            &metric::GPU_CLOCK_LIMIT,
            &[(&GPU_CLOCK_DOMAIN, $domain), (&GPU_CLOCK_LIMIT_KIND, $kind)],
            $call,
            Infrequent,
            $absent,
            |gpu| Ok(f64::from(gpu.device.$method(Clock::$clock)?) * MEGA),
        )
    };
}

/// A row of the time for a reason.
macro_rules! time {
    ($reason:literal, $field:ident) => {
        Row::field(
            &metric::GPU_THROTTLE_TIME,
            (stringify!($field), $field),
            &[(&GPU_THROTTLE_REASON, $reason)],
            FieldValue::Total(NANO),
            Tick,
            NO_COUNTER,
        )
    };
}

/// A row of the time below a limit.
macro_rules! below {
    ($kind:literal, $field:ident) => {
        Row::field(
            &metric::GPU_CLOCK_BELOW_LIMIT_TIME,
            (stringify!($field), $field),
            &[(&GPU_CLOCK_LIMIT_KIND, $kind)],
            FieldValue::Total(NANO),
            Tick,
            "the driver does not count the time below this limit",
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    clock!("graphics", Graphics),
    clock!("sm", SM),
    clock!("memory", Memory),
    clock!("video", Video),
    limit!("graphics", Graphics, max),
    limit!("sm", SM, max),
    limit!("memory", Memory, max),
    limit!("video", Video, max),
    limit!("graphics", Graphics, application),
    limit!("memory", Memory, application),
    limit!("graphics", Graphics, default_application),
    limit!("memory", Memory, default_application),
    limit!("graphics", Graphics, customer_boost),
    limit!("memory", Memory, customer_boost),
    Row::call(
        &metric::GPU_THROTTLE_ACTIVE,
        "nvmlDeviceGetCurrentClocksEventReasons",
        Tick,
        "the GPU has no reasons for low clocks",
        reasons,
    ),
    // The names of clock event reasons, so that time and reason can be joined: nvml.h maps the older names onto them.
    time!("sw_power_cap", NVML_FI_DEV_PERF_POLICY_POWER),
    time!("sync_boost", NVML_FI_DEV_PERF_POLICY_SYNC_BOOST),
    time!("board_limit", NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT),
    time!("low_utilization", NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION),
    time!("reliability", NVML_FI_DEV_PERF_POLICY_RELIABILITY),
    time!(
        "sw_thermal_slowdown",
        NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
    ),
    time!("sw_thermal_slowdown", NVML_FI_DEV_PERF_POLICY_THERMAL)
        .instead_of("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"),
    time!(
        "hw_thermal_slowdown",
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN
    ),
    time!(
        "hw_power_brake_slowdown",
        NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN
    ),
    below!("application", NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS),
    below!("base", NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS),
];

fn reasons(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let now = ffi::clock_event_reasons(gpu.device)?;
    for (bit, reason) in REASONS {
        out.flag(&metric::GPU_THROTTLE_ACTIVE, reason, now & bit != 0);
    }
    Ok(())
}
