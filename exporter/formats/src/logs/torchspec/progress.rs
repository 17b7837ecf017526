//! Combines the bars and lines of a run: the time of a bar, and the measurements of the bottleneck.

use std::time::Duration;

use pulsetrain_otlp::UnixNanos;

use super::{bar::Bar, pool::Pool, weight_sync::WeightSync};
use crate::{logs::lines::Line, tags::TorchSpecReading};

/// The minimum distance of two bars.
const TICK: Duration = Duration::from_millis(1);

/// The state of a run between lines.
#[derive(Debug, Default)]
pub(super) struct StepProgress {
    /// The time of the line "Starting", from which bars count.
    pub(super) start: Option<UnixNanos>,
    pub(super) last_time: Option<UnixNanos>,
    /// The step of the last bar. The last bar of a run is drawn twice.
    pub(super) last_bar: Option<i64>,
    pub(super) timing: Timing,
    /// The samples of one step, from the first line.
    pub(super) global_batch_size: Option<f64>,
    pub(super) pool: Pool,
    /// The last step whose passes have a line of their own.
    pub(super) passes_of: Option<i64>,
    pub(super) weight_sync: WeightSync,
}

/// The fields of the last line with "TIMING".
#[derive(Debug, Default)]
pub(super) struct Timing {
    pub(super) step: Option<i64>,
    pub(super) step_secs: Option<f64>,
    pub(super) data_secs: Option<f64>,
    pub(super) compute_secs: Option<f64>,
    pub(super) dispatch_secs: Option<f64>,
}

impl StepProgress {
    /// Returns the time of a bar.
    pub(super) fn bar_time(&mut self, bar: &Bar<'_>, line: &Line<'_>) -> UnixNanos {
        let last_time = self.last_time.filter(|_| !line.is_live());
        let time = last_time.map_or_else(
            || line.read_time(),
            |last| {
                let elapsed = Duration::from_secs(bar.elapsed_secs().unwrap_or_default());
                let by_start = self.start.map(|start| start.saturating_add(elapsed));
                by_start.unwrap_or_default().max(last.saturating_add(TICK))
            },
        );
        self.last_time = Some(time);
        time
    }

    /// Returns the measurements of the bottleneck from the bar and the last timed step. `None` if performance metrics are off.
    pub(super) fn reading(&self, bar: &Bar<'_>) -> Option<TorchSpecReading> {
        let shown = bar.number("wait")?;
        // The bar rounds the wait to a tenth of a second, longer than some steps; the line with the times of the step does not.
        let is_same_step = self.timing.step == Some(bar.step);
        let dispatch_wait = self
            .timing
            .dispatch_secs
            .filter(|_| is_same_step)
            .unwrap_or(shown);
        let train_capacity = bar.number("T").unwrap_or_default();
        let by_capacity = self.global_batch_size.map(|size| size / train_capacity);
        Some(TorchSpecReading {
            dispatch_wait: Some(dispatch_wait),
            infer_capacity: bar.number("I").unwrap_or_default(),
            train_capacity,
            step_secs: by_capacity
                .filter(|secs| secs.is_finite())
                .or(self.timing.step_secs)
                .or_else(|| bar.work_secs(dispatch_wait)),
            data_secs: self.timing.data_secs,
            compute_secs: self.timing.compute_secs,
            pool_grows: self.pool.grows(),
        })
    }
}
