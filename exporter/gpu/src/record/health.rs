//! The health of a GPU in the four states of `hw.status`: the worst that the driver reports.

use std::collections::BTreeSet;

use pulsetrain_semconv::{attribute, metric};

use super::{
    hw_semconv::{Component, HwMetric},
    store::Observation,
};
use crate::reading::{Reading, Sample, flag};

/// The health of a GPU as the driver reports it.
#[derive(Debug, Default)]
pub(super) struct Health {
    recovery: &'static str,
    /// The active faults, as values of `gpu.fault`.
    faults: BTreeSet<&'static str>,
}

/// The faults that predict a failure.
const PREDICTING: [&str; 4] = [
    "row_remap_pending",
    "page_retirement_pending",
    "sram_threshold_exceeded",
    "unrepairable_memory",
];

impl Health {
    /// Updates the health from a reading, if the reading affects it.
    pub(super) fn observe(&mut self, reading: &Reading) {
        if reading.metric.ordinal == metric::GPU_RECOVERY_ACTION.ordinal
            && let Sample::State(_, action) = reading.value
        {
            self.recovery = action;
        }
        if reading.metric.ordinal != metric::GPU_FAULT_ACTIVE.ordinal {
            return;
        }
        let (Some((_, fault)), Sample::Now(value)) = (reading.labels.fixed.first(), reading.value) else {
            return;
        };
        if value > 0.0 {
            self.faults.insert(*fault);
        } else {
            self.faults.remove(*fault);
        }
    }

    /// Returns the states, with 1 for the current one.
    pub(super) fn status(&self, lost: bool) -> impl Iterator<Item = HwMetric> + use<> {
        let state = self.state(lost);
        ["ok", "degraded", "failed", "predicted_failure"]
            .into_iter()
            .map(move |name| HwMetric {
                metric: &metric::HW_STATUS,
                component: Component::Gpu,
                texts: [
                    Some((&attribute::HW_TYPE, "gpu")),
                    Some((&attribute::HW_STATE, name)),
                ],
                entry: Observation::Held(flag(name == state)),
            })
    }

    fn state(&self, lost: bool) -> &'static str {
        let must_stop = matches!(
            self.recovery,
            "gpu_reset" | "node_reboot" | "drain_and_reset" | "bus_reset" | "system_reboot"
        );
        let has = |fault: &str| self.faults.contains(fault);
        if lost || must_stop || has("row_remap_failure") {
            "failed"
        } else if has("fabric_degraded") || matches!(self.recovery, "drain_p2p" | "recover_imex_domain") {
            "degraded"
        } else if PREDICTING.into_iter().any(has) {
            "predicted_failure"
        } else {
            "ok"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_state_is_the_worst_reported_condition() {
        let well = Health::default();
        assert_eq!(well.state(false), "ok");
        assert_eq!(well.state(true), "failed");
        let faults = BTreeSet::from(["row_remap_pending"]);
        let mut health = Health { recovery: "", faults };
        assert_eq!(health.state(false), "predicted_failure");
        health.recovery = "drain_p2p";
        assert_eq!(health.state(false), "degraded");
    }
}
