//! The health of a GPU in the four states of `hw.status`: the worst that the driver reports.

use pulsetrain_semconv::{attribute, metric};

use super::{
    hw_semconv::{Component, HwMetric},
    store::Observation,
};
use crate::reading::{Reading, Sample};

/// The health of a GPU as the driver reports it.
#[derive(Debug, Default)]
pub(super) struct Health {
    recovery: &'static str,
    remap_failed: bool,
    unrepairable: bool,
    degraded: bool,
    remap_pending: bool,
    retirement_pending: bool,
    too_many_errors: bool,
}

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
        let place = match *fault {
            "row_remap_failure" => &mut self.remap_failed,
            "unrepairable_memory" => &mut self.unrepairable,
            "fabric_degraded" => &mut self.degraded,
            "row_remap_pending" => &mut self.remap_pending,
            "page_retirement_pending" => &mut self.retirement_pending,
            "sram_threshold_exceeded" => &mut self.too_many_errors,
            _ => return,
        };
        *place = value > 0.0;
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
                entry: Observation::Held(f64::from(u8::from(name == state))),
            })
    }

    fn state(&self, lost: bool) -> &'static str {
        let must_stop = matches!(
            self.recovery,
            "gpu_reset" | "node_reboot" | "drain_and_reset" | "bus_reset" | "system_reboot"
        );
        if lost || must_stop || self.remap_failed {
            "failed"
        } else if self.degraded || matches!(self.recovery, "drain_p2p" | "recover_imex_domain") {
            "degraded"
        } else if self.remap_pending || self.retirement_pending || self.too_many_errors || self.unrepairable {
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
        let waiting = Health {
            remap_pending: true,
            ..Health::default()
        };
        assert_eq!(waiting.state(false), "predicted_failure");
        let both = Health {
            remap_pending: true,
            recovery: "drain_p2p",
            ..Health::default()
        };
        assert_eq!(both.state(false), "degraded");
    }
}
