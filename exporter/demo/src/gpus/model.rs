//! A simulated GPU: power follows its load, temperature its power, and counters grow with time.

use pulsetrain_gpu::{Gpu, GpuTrouble};
use pulsetrain_otlp::UnixNanos;

use crate::{faults::GpuCondition, random::Random};

/// Temperature in degrees Celsius: of the room, for each watt, and at which the GPU slows down.
const ROOM: f64 = 27.0;
const PER_WATT: f64 = 0.062;
pub(super) const SLOWDOWN: f64 = 87.0;
/// The time constant of the temperature in steps: usually, and of a GPU whose cooling fails.
const FOLLOWS: f64 = 10.0;
const FOLLOWS_WITHOUT_COOLING: f64 = 1.5;
/// Clocks in hertz: of the multiprocessors at full speed, held back by heat, by the power brake and by the power limit, and
/// idle.
pub(super) const SM_CLOCK: f64 = 1980e6;
const HOT_CLOCK: f64 = 1305e6;
const BRAKED_CLOCK: f64 = 990e6;
const CAPPED_CLOCK: f64 = 1755e6;
const IDLE_CLOCK: f64 = 345e6;
/// The share of the power that is left when clocks are held back by heat, and by the power brake.
const HOT_POWER: f64 = 0.58;
const BRAKED_POWER: f64 = 0.5;
/// The first random stream of the noise; each GPU has its own.
const STREAM: u64 = 0x6800_0000;

/// The load of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    /// Share of the time in which it is busy.
    pub(super) busy: f64,
    /// Power under this load, in watts.
    pub(super) power: f64,
    /// Whether a process uses its memory.
    pub(super) is_used: bool,
    /// Whether it does not answer.
    pub(super) lost: bool,
}

/// A GPU.
pub(super) struct GpuModel {
    gpu: Gpu,
    random: Random,
    read_unix_nanos: UnixNanos,
    pub(super) load: Load,
    pub(super) condition: GpuCondition,
    /// Whether the power limit holds its clocks down.
    pub(super) is_capped: bool,
    pub(super) busy: f64,
    pub(super) power: f64,
    pub(super) temperature: f64,
    pub(super) clock: f64,
    pub(super) counters: Counters,
}

/// The counters since the driver was loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Energy in millijoules.
    pub(super) energy: f64,
    /// Time in nanoseconds with clocks held back by heat, by the power brake and by the power limit, and lowered because the GPU
    /// is idle.
    pub(super) hot: u64,
    pub(super) braked: u64,
    pub(super) capped: u64,
    pub(super) idle: u64,
    /// Errors of memory and of NVLink, and replays of PCI Express.
    pub(super) corrected_errors: f64,
    pub(super) uncorrected_errors: f64,
    pub(super) link_recoveries: f64,
    pub(super) pcie_replays: f64,
}

impl GpuModel {
    /// Returns a cold GPU with this index on its host.
    pub(super) fn new(index: u32, id: &str, seed: u64, rank: u64) -> Self {
        let bus = 0x19 + index * 0x10;
        let mut random = Random::new(seed, STREAM + rank);
        Self {
            gpu: Gpu {
                index,
                uuid: id.to_owned(),
                name: "NVIDIA H100 80GB HBM3".to_owned(),
                pci_bus_id: format!("00000000:{bus:02X}:00.0"),
                minor_number: Some(index),
                serial: Some(format!("16509240{:05}", random.next() % 100_000)),
                vbios_version: Some("96.00.99.00.01".to_owned()),
                architecture: Some("Hopper".to_owned()),
                compute_capability: Some((9, 0)),
                mig: Some(false),
                ..Gpu::default()
            },
            random,
            read_unix_nanos: UnixNanos::UNKNOWN,
            load: Load {
                busy: 0.0,
                power: 0.0,
                is_used: false,
                lost: false,
            },
            condition: GpuCondition::default(),
            is_capped: false,
            busy: 0.0,
            power: 0.0,
            temperature: 34.0,
            clock: IDLE_CLOCK,
            counters: Counters {
                energy: 3.1e9 + rank as f64 * 1.7e7,
                ..Counters::default()
            },
        }
    }

    /// Returns the driver's description of the GPU.
    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Advances the GPU to a time, under a load and in a condition.
    pub(super) fn advance(
        &mut self,
        now_unix_nanos: UnixNanos,
        step_seconds: f64,
        load: &Load,
        condition: &GpuCondition,
    ) {
        let nanos = match self.read_unix_nanos {
            UnixNanos::UNKNOWN => 0,
            last => now_unix_nanos.nanos_since(last),
        };
        self.read_unix_nanos = now_unix_nanos;
        let seconds = nanos as f64 / 1e9;
        self.gpu.trouble = load.lost.then_some(GpuTrouble::Lost);
        self.load = *load;
        self.condition.clone_from(condition);
        let left = match condition {
            GpuCondition { is_braked: true, .. } => BRAKED_POWER,
            GpuCondition { is_hot: true, .. } => HOT_POWER,
            _ => 1.0,
        };
        let wanted = load.power * left * self.random.factor(0.02);
        self.power = wanted.min(condition.power_limit);
        self.is_capped = wanted > condition.power_limit;
        self.busy = (load.busy * self.random.normal(1.0, 0.01)).clamp(0.0, 1.0);
        let (target, steps) = if condition.is_hot {
            (SLOWDOWN + 4.0, FOLLOWS_WITHOUT_COOLING)
        } else {
            (ROOM + PER_WATT * self.power, FOLLOWS)
        };
        let share = 1.0 - (-seconds / (steps * step_seconds)).exp();
        self.temperature = (self.temperature + (target - self.temperature) * share).min(SLOWDOWN + 1.0);
        self.clock = match condition {
            GpuCondition { is_braked: true, .. } => BRAKED_CLOCK,
            GpuCondition { is_hot: true, .. } => HOT_CLOCK,
            _ if load.busy == 0.0 => IDLE_CLOCK,
            _ if self.is_capped => CAPPED_CLOCK,
            _ => SM_CLOCK,
        };
        self.count(nanos, seconds / step_seconds);
    }

    /// Advances the counters of the driver by nanoseconds, which are this many steps.
    fn count(&mut self, nanos: u64, steps: f64) {
        let Self {
            counters, condition, ..
        } = self;
        counters.energy += self.power * (nanos as f64 / 1e6);
        for (holds, counter) in [
            (condition.is_hot, &mut counters.hot),
            (condition.is_braked, &mut counters.braked),
            (self.is_capped, &mut counters.capped),
            (self.load.busy == 0.0, &mut counters.idle),
        ] {
            if holds {
                *counter += nanos;
            }
        }
        counters.corrected_errors += condition.corrected_errors * steps;
        counters.uncorrected_errors += condition.uncorrected_errors * steps;
        counters.link_recoveries += condition.link_recoveries * steps;
        counters.pcie_replays += condition.pcie_replays * steps;
    }

    /// Returns a value with the relative noise of the power.
    pub(super) fn about(&self, value: f64) -> f64 {
        value * (self.power / self.load.power.max(1.0)).clamp(0.5, 1.5)
    }
}
