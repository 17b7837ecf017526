//! The series of IMEX, which belong to the host and not to a GPU.

use std::sync::Arc;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Attribute, AttributeKind, Metric, attribute, metric};

use super::store::{Observation, ObservationContext, SeriesStore};
use crate::{GpuNotice, imex::ImexReading, reading::flag};

/// The state of the recording of IMEX.
#[derive(Debug, Default)]
pub(super) struct Imex {
    has_failed: bool,
}

impl Imex {
    /// Records a reading. A state without an answer ends its series; the first of several failures is reported.
    pub(super) fn record(
        &mut self,
        reading: ImexReading,
        store: &mut SeriesStore,
        now_unix_nanos: UnixNanos,
        notices: &mut Vec<GpuNotice>,
    ) {
        for (metric, attribute, state) in [
            (
                &metric::GPU_IMEX_DOMAIN_STATE,
                &attribute::GPU_IMEX_DOMAIN_STATE,
                reading.domain,
            ),
            (
                &metric::GPU_IMEX_DAEMON_STATE,
                &attribute::GPU_IMEX_DAEMON_STATE,
                reading.daemon,
            ),
        ] {
            match state {
                Some(state) => observe(store, metric, attribute, state, now_unix_nanos),
                None => store.end(now_unix_nanos, |_, ended| ended.ordinal == metric.ordinal),
            }
        }
        let had_failed = std::mem::replace(&mut self.has_failed, reading.failure.is_some());
        let why = reading.failure.filter(|_| !had_failed);
        notices.extend(why.map(|why| GpuNotice::Imex { why }));
    }
}

fn observe(
    store: &mut SeriesStore,
    metric: &'static Metric,
    attribute: &'static Attribute,
    state: &'static str,
    now_unix_nanos: UnixNanos,
) {
    let AttributeKind::Enum(states) = attribute.kind else {
        return;
    };
    let carried = Arc::new([]) as super::subject::EntityAttributes;
    for name in states {
        let place = ObservationContext {
            texts: [Some((attribute, *name)), None],
            ..ObservationContext::of_host(&carried, metric, now_unix_nanos)
        };
        store.observe(place, Observation::Held(flag(*name == state)));
    }
}

/// Returns whether a metric is one of IMEX, which does not depend on the driver of the GPUs.
pub(super) fn is_of_imex(metric: &Metric) -> bool {
    [&metric::GPU_IMEX_DOMAIN_STATE, &metric::GPU_IMEX_DAEMON_STATE]
        .iter()
        .any(|own| own.ordinal == metric.ordinal)
}
