//! The state of a pipeline's sinks for the live page.

use pulsetrain_page::{PageTelemetry, SinkState};
use pulsetrain_pipeline::Ledger;

/// The ledger of a pipeline, as the page reads it.
pub(crate) struct LedgerView(pub(crate) Ledger);

impl PageTelemetry for LedgerView {
    fn sinks(&self) -> Vec<SinkState> {
        let sinks = self.0.snapshot().into_iter().map(|counts| SinkState {
            accepted: counts.accepted,
            delivered: counts.delivered,
            queued: counts.queued + counts.on_disk_items(),
            dropped: counts
                .losses()
                .map(|loss| {
                    (
                        format!("{} ({})", loss.reason.as_str().replace('_', " "), loss.signal),
                        loss.items,
                    )
                })
                .collect(),
            error: counts.failure.as_ref().map(|failure| failure.problem.to_string()),
            name: counts.name,
        });
        sinks.collect()
    }
}
