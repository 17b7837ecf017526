//! The section `derive`: signals that are computed from other signals on their way to the sinks.

use pulsetrain_derive::{EnergyConfig, SignalsConfig};

use super::{quantity::Time, section::section};

section! {
    /// Signals that are computed from others.
    pub(crate) struct DeriveConfig {
        /// Signals of training steps: throughput, MFU, smoothed values, anomalies, ETA, bottleneck.
        signals: SignalsSection = SignalsSection::default(),
        /// The energy and activity of the GPUs in each training step.
        energy: EnergySection = EnergySection::default(),
    }
}

section! {
    /// Signals of training steps: throughput, MFU, smoothed values, anomalies, ETA, bottleneck. A metric that the trainer sends
    /// itself is not derived.
    pub(crate) struct SignalsSection {
        /// Whether these signals are derived.
        enabled: bool = true,
        /// How long a step waits for its other spans and points after the first one arrived.
        wait: Time = Time::secs(1),
    }
}

section! {
    /// The GPU energy and use of each training step: joules, watts, busy share, throttle time. On its span, and as gpu.step.*
    pub(crate) struct EnergySection {
        /// Whether it is computed. Without observed GPUs it has no cost and no delay.
        enabled: bool = true,
        /// How long the span of a step waits for the next reading of its GPUs. Must exceed the interval of readings.
        wait: Time = Time::secs(5),
    }
}

impl EnergySection {
    /// Returns the settings of the stage.
    pub(crate) fn settings(&self) -> EnergyConfig {
        EnergyConfig {
            wait: self.wait.0,
            ..EnergyConfig::default()
        }
    }
}

impl SignalsSection {
    /// Returns the settings of the stage.
    pub(crate) fn settings(&self) -> SignalsConfig {
        SignalsConfig {
            wait: self.wait.0,
            ..SignalsConfig::default()
        }
    }
}
