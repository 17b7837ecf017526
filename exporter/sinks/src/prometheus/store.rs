//! The store: every series with its last value, grouped by family.

use std::sync::Arc;

use super::PrometheusConfig;

/// The series of one sink; a clone sees the same ones.
#[derive(Clone)]
pub struct PrometheusStore {
    shared: Arc<Shared>,
}

struct Shared {
    _config: PrometheusConfig,
}

/// What the store holds and what it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrometheusCounts {
    /// The series now.
    pub series: usize,
    /// The points refused since the start, one entry a reason, in the order of [`Refusal::ALL`]; zeros included.
    pub refused: Vec<(Refusal, u64)>,
}

/// Why a point cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Its series would be one more than `series_limit`.
    SeriesLimit,
}

impl PrometheusStore {
    pub(super) fn new(config: &PrometheusConfig) -> Self {
        let shared = Shared {
            _config: config.clone(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What the store holds and what it refused.
    pub fn counts(&self) -> PrometheusCounts {
        let _ = &self.shared;
        PrometheusCounts::default()
    }
}
