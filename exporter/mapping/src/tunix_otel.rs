//! Maps Tunix's own OpenTelemetry metrics (`enable_opentelemetry`, `tunix/sft/metrics_logger.py`) from a file
//! (`exporter/formats`) or from a client (`exporter/translate`).
//!
//! The names of the metrics are those of Tunix's tags, with the prefix and the mode in attributes: `tunix.sum.rollout_time`
//! with the prefix `perf` in mode `train` is `perf/train/sum/rollout_time`, a tag with a row in `mappings/tunix.yaml`. A point
//! has the time of its export, and the value of `tunix.training.step` for its prefix and mode as its step.
//!
//! The SDK exports a gauge repeatedly until it is set again. A point with neither a new value nor a new step is dropped, since
//! it would duplicate a duration of the same step.

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

use crate::{RecordMeta, ScalarMapper, trainer};

/// The instrumentation scope of Tunix.
pub const SCOPE: &str = "tunix";

/// The attribute with the prefix, which is not in the name of the metric; an empty prefix is omitted.
pub const PREFIX: &str = "tunix.metrics.prefix";
/// The attribute with the mode.
pub const MODE: &str = "tunix.training.mode";

/// The gauge whose value is the step.
pub const STEP: &str = "tunix.training.step";

/// The names that are not derived from the tag.
const NAMES: [(&str, &str); 4] = [
    ("tunix.training.loss", "loss"),
    ("tunix.training.perplexity", "perplexity"),
    ("tunix.training.learning_rate", "learning_rate"),
    ("tunix.training.gradient.norm", "grad_norm"),
];

/// The skip rule for points that are exported again.
pub(crate) const EXPORTED_AGAIN: &str = "exported_again";

/// The limits for the tags, and for the pairs of prefix and mode, of one run: a client can invent any number of them.
const MAX_TAGS: usize = 4096;
const MAX_STEPS: usize = 256;

/// One point of Tunix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtelPoint<'v> {
    /// The attribute `tunix.metrics.prefix`.
    pub prefix: &'v str,
    /// The attribute `tunix.training.mode`.
    pub mode: &'v str,
    /// The metric's name.
    pub name: &'v str,
    /// Nanoseconds since 1970.
    pub time_unix_nanos: UnixNanos,
    /// The value.
    pub value: f64,
}

/// The state of one run of Tunix.
#[derive(Debug)]
pub struct TunixOtel {
    scalars: ScalarMapper,
    /// The last step of each prefix and mode.
    steps: BTreeMap<(String, String), i64>,
    /// The last step of each tag, and the bits of its last value.
    last: HashMap<String, (Option<i64>, u64)>,
}

impl Default for TunixOtel {
    fn default() -> Self {
        Self {
            scalars: ScalarMapper::of_trainer(trainer("tunix")),
            steps: BTreeMap::new(),
            last: HashMap::new(),
        }
    }
}

impl TunixOtel {
    /// Records the points of one export. The points of the steps may follow the points that they apply to.
    pub fn record(
        &mut self,
        points: &[OtelPoint<'_>],
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) {
        self.learn_steps(points);
        points
            .iter()
            .for_each(|point| self.record_point(point, position, recorder));
    }

    fn learn_steps(&mut self, points: &[OtelPoint<'_>]) {
        for point in points.iter().filter(|point| point.name == STEP) {
            let of = (point.prefix.to_owned(), point.mode.to_owned());
            if self.steps.contains_key(&of) || self.steps.len() < MAX_STEPS {
                self.steps.insert(of, point.value as i64);
            }
        }
    }

    fn record_point(&mut self, point: &OtelPoint<'_>, position: SourcePosition, recorder: &mut Recorder<'_>) {
        if point.name == STEP {
            return recorder.skip_value(SkipReason::Ignored("step_again"));
        }
        let tag = tag(point);
        if !self.scalars.admits(&tag, MAX_TAGS) {
            return recorder.skip_value(SkipReason::TooManyCustomNames);
        }
        let of = (point.prefix.to_owned(), point.mode.to_owned());
        let at = RecordMeta {
            time_unix_nanos: point.time_unix_nanos,
            step: self.steps.get(&of).copied(),
            position,
        };
        let news = (at.step, point.value.to_bits());
        if self.last.get(&tag) == Some(&news) {
            return recorder.skip_value(SkipReason::Ignored(EXPORTED_AGAIN));
        }
        self.scalars.record(&tag, at, point.value, recorder);
        self.last.insert(tag, news);
    }
}

/// Returns the TensorBoard tag of the same value.
fn tag(point: &OtelPoint<'_>) -> String {
    let known = NAMES.iter().find(|(name, _)| *name == point.name);
    let name = known.map_or_else(
        || {
            let name = point.name.strip_prefix("tunix.").unwrap_or(point.name);
            name.replace('.', "/")
        },
        |(_, name)| (*name).to_owned(),
    );
    format!("{}/{}/{name}", point.prefix, point.mode)
}
