//! The readings of a simulated driver: one for each row of NVML's table that an H100 without a display answers.

use pulsetrain_gpu::{GpuLabels, GpuReadings};
use pulsetrain_semconv::{attribute as a, metric as m};

use super::model::{Counters, GpuModel, SLOWDOWN, SM_CLOCK};

const GIB: f64 = 1_073_741_824.0;
/// Memory in bytes: of the GPU, reserved by the driver, used by the job, and used when the memory is full.
const MEMORY: f64 = 79.6 * GIB;
const MEMORY_RESERVED: f64 = 0.6 * GIB;
const MEMORY_OF_JOB: f64 = 62.5 * GIB;
const MEMORY_WHEN_FULL: f64 = 78.8 * GIB;
const POWER_LIMIT: f64 = 700.0;
const MEMORY_CLOCK: f64 = 2619e6;
/// NVLinks of the GPU, and the one that has errors.
const LINKS: u32 = 18;
const FAULTY_LINK: u32 = 7;
/// Counters of the driver are in milli- and nano-units.
const MILLI: f64 = 1e-3;
const NANO: f64 = 1e-9;

const NONE: GpuLabels = &[];

/// Adds a reading of a metric for each of these values of an attribute.
macro_rules! now {
    ($out:ident, $metric:ident, $attribute:ident { $($label:literal: $value:expr,)* }) => {
        $($out.now(&m::$metric, &[(&a::$attribute, $label)], $value);)*
    };
}

impl GpuModel {
    /// Adds the current readings of the GPU to `out`.
    pub(super) fn read(&self, out: &mut GpuReadings) {
        self.read_activity(out);
        self.read_memory(out);
        self.read_power(out);
        self.read_heat(out);
        self.read_clocks(out);
        self.read_links(out);
        self.read_health(out);
    }

    fn read_activity(&self, out: &mut GpuReadings) {
        let computes = ((self.power - 118.0) / 512.0).clamp(0.0, 1.0);
        now!(out, GPU_UTILIZATION, GPU_TASK {
            "general": percent(self.busy),
            "encoder": 0.0,
            "decoder": 0.0,
            "jpeg": 0.0,
            "ofa": 0.0,
        });
        out.now(&m::GPU_MEMORY_ACTIVITY, NONE, percent(computes * 0.52));
        out.now(&m::GPU_GRAPHICS_ACTIVE, NONE, self.busy);
        out.now(&m::GPU_SM_ACTIVE, NONE, self.busy * (0.12 + 0.78 * computes));
        out.now(&m::GPU_SM_OCCUPANCY, NONE, self.busy * (0.03 + 0.22 * computes));
        now!(out, GPU_PIPE_UTILIZATION, GPU_PIPE {
            "tensor": computes * 0.46,
            "fp32": computes * 0.05,
        });
        out.now(&m::GPU_MEMORY_BANDWIDTH_UTILIZATION, NONE, computes * 0.43);
    }

    fn read_memory(&self, out: &mut GpuReadings) {
        let used = match (self.load.is_used, self.condition.is_full) {
            (false, _) => 0.0,
            (true, false) => MEMORY_OF_JOB,
            (true, true) => MEMORY_WHEN_FULL,
        };
        out.now(&m::GPU_MEMORY_USED, NONE, used);
        out.now(&m::GPU_MEMORY_FREE, NONE, MEMORY - MEMORY_RESERVED - used);
        out.now(&m::GPU_MEMORY_RESERVED, NONE, MEMORY_RESERVED);
        out.now(&m::GPU_MEMORY_LIMIT, NONE, MEMORY);
    }

    fn read_power(&self, out: &mut GpuReadings) {
        out.now(&m::GPU_POWER, &[(&a::GPU_POWER_READING, "instant")], self.power);
        out.now(&m::GPU_AVERAGE_POWER, NONE, self.power);
        out.total(&m::GPU_ENERGY, NONE, self.counters.energy as u64, MILLI);
        now!(out, GPU_POWER_LIMIT, GPU_POWER_LIMIT_KIND {
            "enforced": self.condition.power_limit,
            "requested": self.condition.power_limit,
            "default": POWER_LIMIT,
            "min": 200.0,
            "max": POWER_LIMIT,
        });
    }

    fn read_heat(&self, out: &mut GpuReadings) {
        let degrees = self.temperature.round();
        now!(out, GPU_TEMPERATURE, GPU_TEMPERATURE_SENSOR {
            "gpu": degrees,
            "memory": (self.temperature + 9.0).round(),
        });
        out.now(&m::GPU_TEMPERATURE_MARGIN, NONE, SLOWDOWN - degrees);
        now!(out, GPU_TEMPERATURE_LIMIT, GPU_TEMPERATURE_LIMIT_KIND {
            "slowdown": SLOWDOWN,
            "shutdown": 92.0,
            "memory_max": 95.0,
        });
    }

    fn read_clocks(&self, out: &mut GpuReadings) {
        let (hot, braked) = (self.condition.is_hot, self.condition.is_braked);
        now!(out, GPU_CLOCK_FREQUENCY, GPU_CLOCK_DOMAIN {
            "graphics": self.clock,
            "sm": self.clock,
            "memory": MEMORY_CLOCK,
        });
        let max_of_sm: GpuLabels = &[(&a::GPU_CLOCK_DOMAIN, "sm"), (&a::GPU_CLOCK_LIMIT_KIND, "max")];
        let max_of_memory: GpuLabels = &[
            (&a::GPU_CLOCK_DOMAIN, "memory"),
            (&a::GPU_CLOCK_LIMIT_KIND, "max"),
        ];
        out.now(&m::GPU_CLOCK_LIMIT, max_of_sm, SM_CLOCK);
        out.now(&m::GPU_CLOCK_LIMIT, max_of_memory, MEMORY_CLOCK);
        let is_idle = self.load.busy == 0.0;
        now!(out, GPU_THROTTLE_ACTIVE, GPU_THROTTLE_REASON {
            "idle": flag(is_idle),
            "applications_clocks_setting": 0.0,
            "sw_power_cap": flag(self.is_capped),
            "hw_slowdown": flag(hot || braked),
            "sync_boost": 0.0,
            "sw_thermal_slowdown": flag(hot),
            "hw_thermal_slowdown": flag(hot),
            "hw_power_brake_slowdown": flag(braked),
            "display_clock_setting": 0.0,
        });
        let Counters {
            hot,
            braked,
            capped,
            idle,
            ..
        } = self.counters;
        for (reason, nanos) in [
            (&[(&a::GPU_THROTTLE_REASON, "sw_power_cap")], capped),
            (&[(&a::GPU_THROTTLE_REASON, "sync_boost")], 0),
            (&[(&a::GPU_THROTTLE_REASON, "board_limit")], 0),
            (&[(&a::GPU_THROTTLE_REASON, "low_utilization")], idle),
            (&[(&a::GPU_THROTTLE_REASON, "reliability")], 0),
            (&[(&a::GPU_THROTTLE_REASON, "sw_thermal_slowdown")], hot),
            (&[(&a::GPU_THROTTLE_REASON, "hw_thermal_slowdown")], hot),
            (&[(&a::GPU_THROTTLE_REASON, "hw_power_brake_slowdown")], braked),
        ] as [(GpuLabels, u64); 8]
        {
            out.total(&m::GPU_THROTTLE_TIME, reason, nanos, NANO);
        }
    }

    fn read_links(&self, out: &mut GpuReadings) {
        let computes = ((self.power - 118.0) / 512.0).clamp(0.0, 1.0);
        for (direction, pcie, nvlink) in [
            (&[(&a::GPU_IO_DIRECTION, "transmit")], 0.4e9, 61e9),
            (&[(&a::GPU_IO_DIRECTION, "receive")], 1.1e9, 60e9),
        ] as [(GpuLabels, f64, f64); 2]
        {
            out.now(&m::GPU_PCIE_THROUGHPUT, direction, self.about(pcie * self.busy));
            out.now(
                &m::GPU_NVLINK_THROUGHPUT,
                direction,
                self.about(nvlink * computes),
            );
        }
        for link in 0..LINKS {
            let number = (&a::GPU_LINK_INDEX, link);
            let is_up = self.condition.link_down != Some(link);
            out.now_of(&m::GPU_NVLINK_UP, NONE, number, flag(is_up));
            let recoveries = if link == FAULTY_LINK {
                self.counters.link_recoveries as u64
            } else {
                0
            };
            out.total_of(
                &m::GPU_NVLINK_ERRORS,
                &[(&a::ERROR_TYPE, "dl_recovery")],
                number,
                recoveries,
                1.0,
            );
        }
        out.total(&m::GPU_PCIE_REPLAYS, NONE, self.counters.pcie_replays as u64, 1.0);
        for (reading, generation, width) in [
            (
                &[(&a::GPU_LINK_READING, "current")],
                self.condition.pcie_generation,
                self.condition.pcie_width,
            ),
            (&[(&a::GPU_LINK_READING, "max")], 5.0, 16.0),
        ] as [(GpuLabels, f64, f64); 2]
        {
            out.now(&m::GPU_PCIE_GENERATION, reading, generation);
            out.now(&m::GPU_PCIE_WIDTH, reading, width);
        }
    }

    fn read_health(&self, out: &mut GpuReadings) {
        out.state(&m::GPU_PERFORMANCE_STATE, &a::GPU_PERFORMANCE_STATE, "p0");
        out.state(&m::GPU_COMPUTE_MODE, &a::GPU_COMPUTE_MODE, "default");
        out.state(
            &m::GPU_RECOVERY_ACTION,
            &a::GPU_RECOVERY_ACTION,
            self.condition.recovery_action,
        );
        now!(out, GPU_FEATURE_ACTIVE, GPU_FEATURE {
            "persistence": 1.0,
            "ecc": 1.0,
            "mig": 0.0,
        });
        for fault in [
            &[(&a::GPU_FAULT, "row_remap_pending")],
            &[(&a::GPU_FAULT, "row_remap_failure")],
            &[(&a::GPU_FAULT, "sram_threshold_exceeded")],
            &[(&a::GPU_FAULT, "fabric_degraded")],
        ] as [GpuLabels; 4]
        {
            let is_active = self.condition.faults.contains(&fault[0].1);
            out.now(&m::GPU_FAULT_ACTIVE, fault, flag(is_active));
        }
        for (severity, errors) in [
            (
                &[(&a::GPU_ECC_SEVERITY, "corrected")],
                self.counters.corrected_errors,
            ),
            (
                &[(&a::GPU_ECC_SEVERITY, "uncorrected")],
                self.counters.uncorrected_errors,
            ),
        ] as [(GpuLabels, f64); 2]
        {
            out.total(&m::GPU_ECC_ERRORS, severity, errors as u64, 1.0);
            out.total(&m::GPU_REMAPPED_ROWS, severity, 0, 1.0);
        }
    }
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Returns a share in the resolution of NVML's utilization: rounded to a percent.
fn percent(share: f64) -> f64 {
    (share * 100.0).round() / 100.0
}
