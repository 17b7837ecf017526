//! The three signals of OTLP that Pulsetrain supports.

/// A signal of OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// `opentelemetry.proto.trace.v1.TracesData`: spans.
    Traces,
    /// `opentelemetry.proto.metrics.v1.MetricsData`: points.
    Metrics,
    /// `opentelemetry.proto.logs.v1.LogsData`: log records and events.
    Logs,
}

impl Signal {
    /// All signals.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// Returns the name for paths and variables: `traces`, `metrics`, `logs`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }
}

impl std::fmt::Display for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
