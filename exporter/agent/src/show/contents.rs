//! The contents of a recorded file, read once before it is shown: its runs, its start time and whether it has derived
//! signals.

use std::{collections::BTreeSet, path::Path};

use pulsetrain_otlp::{
    Signal, UnixNanos, WireError,
    view::{
        AnyValue, InstrumentationScope, LogsData, Message, Metric, MetricData, MetricsData, Resource,
        ResourceLogs, ResourceMetrics, ResourceSpans, TracesData,
    },
};
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_semconv::attribute;
use pulsetrain_tail::RunOptions;
use pulsetrain_trace_inputs::{ConvertError, ReadOptions, read_input};

use super::recorded::MEMORY;

/// The contents of a file that determine the order of files and the derived signals.
#[derive(Debug)]
pub(super) struct Contents {
    /// The values of `train.run.id` of its resources.
    pub(super) runs: BTreeSet<String>,
    /// The earliest time of a point or event, or end of a span; [`UnixNanos::MAX`] for a file without times.
    pub(super) begin_unix_nanos: UnixNanos,
    /// Whether a scope of the file is that of derived signals.
    pub(super) has_derived: bool,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            runs: BTreeSet::new(),
            begin_unix_nanos: UnixNanos::MAX,
            has_derived: false,
        }
    }
}

impl Contents {
    /// Reads a file to its end. Errors are left to the reader that shows the file.
    pub(super) fn of(path: &Path) -> Self {
        let mut contents = Self::default();
        let (options, room) = (
            RunOptions::default(),
            MemoryBudget {
                bytes: MEMORY,
                folder: None,
            },
        );
        let options = ReadOptions {
            run: &options,
            room: &room,
        };
        let _ = read_input(path, options, |input| input, &mut |signal, bytes: Vec<u8>| {
            let _ = contents.add(signal, &bytes);
            Ok::<(), ConvertError>(())
        });
        contents
    }

    fn add(&mut self, signal: Signal, bytes: &[u8]) -> Result<(), WireError> {
        match signal {
            Signal::Metrics => {
                for resource in MetricsData::decode(bytes)?.resource_metrics {
                    self.add_metrics(&resource?)?;
                }
            }
            Signal::Traces => {
                for resource in TracesData::decode(bytes)?.resource_spans {
                    self.add_spans(&resource?)?;
                }
            }
            Signal::Logs => {
                for resource in LogsData::decode(bytes)?.resource_logs {
                    self.add_logs(&resource?)?;
                }
            }
        }
        Ok(())
    }

    fn add_metrics(&mut self, metrics: &ResourceMetrics<'_>) -> Result<(), WireError> {
        self.add_resource(metrics.resource)?;
        for scope in metrics.scope_metrics {
            let scope = scope?;
            self.add_scope(scope.scope);
            for metric in scope.metrics {
                self.add_times(&metric?)?;
            }
        }
        Ok(())
    }

    fn add_times(&mut self, metric: &Metric<'_>) -> Result<(), WireError> {
        match metric.data() {
            Some(MetricData::Gauge(gauge)) => {
                for point in gauge.data_points {
                    self.add_time(point?.time_unix_nano);
                }
            }
            Some(MetricData::Sum(sum)) => {
                for point in sum.data_points {
                    self.add_time(point?.time_unix_nano);
                }
            }
            Some(MetricData::Histogram(histogram)) => {
                for point in histogram.data_points {
                    self.add_time(point?.time_unix_nano);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_spans(&mut self, spans: &ResourceSpans<'_>) -> Result<(), WireError> {
        self.add_resource(spans.resource)?;
        for scope in spans.scope_spans {
            let scope = scope?;
            self.add_scope(scope.scope);
            for span in scope.spans {
                // A span is written when it ends: the root span of a run is in the last of its files.
                self.add_time(span?.end_time_unix_nano);
            }
        }
        Ok(())
    }

    fn add_logs(&mut self, logs: &ResourceLogs<'_>) -> Result<(), WireError> {
        self.add_resource(logs.resource)?;
        for scope in logs.scope_logs {
            let scope = scope?;
            self.add_scope(scope.scope);
            for record in scope.log_records {
                self.add_time(record?.time_unix_nano);
            }
        }
        Ok(())
    }

    fn add_resource(&mut self, resource: Option<Resource<'_>>) -> Result<(), WireError> {
        for attribute in resource.unwrap_or_default().attributes {
            let attribute = attribute?;
            if attribute.key == attribute::TRAIN_RUN_ID.name
                && let Some(AnyValue::String(id)) = attribute.value
                && let Ok(id) = id.to_str()
                && !self.runs.contains(id)
            {
                self.runs.insert(id.to_owned());
            }
        }
        Ok(())
    }

    fn add_scope(&mut self, scope: Option<InstrumentationScope<'_>>) {
        self.has_derived |= scope.unwrap_or_default().name == pulsetrain_derive::SCOPE;
    }

    fn add_time(&mut self, time_unix_nano: u64) {
        let time = UnixNanos(time_unix_nano);
        if time.is_known() {
            self.begin_unix_nanos = self.begin_unix_nanos.min(time);
        }
    }
}
