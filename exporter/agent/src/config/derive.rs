//! What is computed from other signals on their way to the sinks.

use pulsetrain_derive::{EnergyConfig, SignalsConfig};

use super::{quantity::Time, section::section};

section! {
    /// What is computed from what passes by.
    pub(crate) struct DeriveConfig {
        /// Signals of training steps: throughput, MFU, smoothed values, anomalies, ETA, bottleneck.
        signals: SignalsSection = SignalsSection::default(),
        /// What each training step took of its GPUs.
        energy: EnergySection = EnergySection::default(),
    }
}

section! {
    /// Signals of training steps: throughput, MFU, smoothed values, anomalies, ETA, bottleneck. A metric that the trainer sends
    /// itself is not derived.
    pub(crate) struct SignalsSection {
        /// Whether they are derived.
        enabled: bool = true,
        /// How long a step waits for more of its spans and points after its first one came.
        wait: Time = Time::secs(1),
    }
}

section! {
    /// What each training step took of its GPUs: joules, watts, busy share, throttle time. On its span, and as gpu.step.*
    pub(crate) struct EnergySection {
        /// Whether it is computed. Where no GPU is observed it costs nothing and holds up nothing.
        enabled: bool = true,
        /// How long the span of a step waits for the next reading of its GPUs. Longer than the interval at which they are
        /// read.
        wait: Time = Time::secs(5),
    }
}

impl EnergySection {
    /// The settings as the stage takes them.
    pub(crate) fn settings(&self) -> EnergyConfig {
        EnergyConfig {
            wait: self.wait.0,
            ..EnergyConfig::default()
        }
    }
}

impl SignalsSection {
    /// Returns the settings as the stage takes them.
    pub(crate) fn settings(&self) -> SignalsConfig {
        SignalsConfig {
            wait: self.wait.0,
            ..SignalsConfig::default()
        }
    }
}
