//! A row of the NVML table: its metric, its query, its cadence, and the meaning of a missing answer.

use std::time::Duration;

use nvml_wrapper::{Device, error::NvmlError};
use pulsetrain_semconv::Metric;

use crate::{
    GpuProcess, Reason,
    reading::{Fixed, Labels, Readings},
};

pub(crate) use crate::reading::Cadence;

/// A row of the table: one query to the driver.
pub(crate) struct Row {
    /// The metric that it fills.
    pub(crate) metric: &'static Metric,
    /// Other metrics that the same answer fills; for a performance counter, the integral of its rate.
    pub(crate) also: &'static [&'static Metric],
    /// The call or the field of NVML.
    pub(crate) call: &'static str,
    /// The cadence of the query.
    pub(crate) cadence: Cadence,
    /// The meaning of a missing answer, for the operator.
    pub(crate) absent: &'static str,
    /// The call of the preferred row of the same metric. This row is queried only if the preferred one has no answer.
    pub(crate) instead_of: Option<&'static str>,
    /// The part that the sensors have to measure; `None` if the row does not depend on it.
    pub(crate) measures: Option<Measured>,
    /// The kind of the query.
    pub(crate) read: Read,
}

/// The part that the sensors measure if a call names no part of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// The GPU.
    Gpu,
    /// The module of GPU, CPU and memory (GH200).
    Module,
}

/// The kind of a query.
pub(crate) enum Read {
    /// As one of many fields in one call.
    Field(Field),
    /// By a call of its own.
    Call(fn(&QueryContext<'_, '_>, &mut Readings) -> Result<(), QueryError>),
    /// By a call of its own that returns the current value of the series with these labels.
    Value(Fixed, fn(&QueryContext<'_, '_>) -> Result<f64, QueryError>),
    /// As one of the performance counters between two passes.
    Counter {
        /// The counter, by its number in `nvml.h`.
        id: u32,
        /// Identifies its series among those of the metric.
        labels: Fixed,
        /// The number of the engine; `None` if the counter is not per engine.
        engine: Option<u32>,
        /// The factor from the unit of the counter to that of the metric.
        scale: f64,
    },
    /// As an event of the driver.
    Event,
}

/// A field (`nvmlDeviceGetFieldValues`).
pub(crate) struct Field {
    /// The id in the numbering of NVML 12, from which the driver's own id is derived.
    pub(crate) id: u32,
    /// The scope of the query.
    pub(crate) scope: Scope,
    /// Identifies its series among those of the metric.
    pub(crate) labels: Fixed,
    /// The interpretation of the value.
    pub(crate) value: FieldValue,
}

/// The scope of a field: a part of the GPU, its links or its power profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A part, by the number that NVML gives it; 0 for all of it.
    Part(u32),
    /// Each NVLink.
    EachNvlink,
    /// The sum of all NVLinks of the GPU, or each NVLink if so configured.
    NvlinkCounter,
    /// Each link between GPU and CPU.
    EachC2c,
    /// Each preset profile of power smoothing.
    EachPowerProfile,
}

/// The interpretation of the value of a field.
#[derive(Clone, Copy)]
pub(crate) enum FieldValue {
    /// The current value, multiplied by this factor.
    Now(f64),
    /// The current value of a setting, multiplied by this factor; no value if it is not set.
    Settable(f64),
    /// A percentage, as a ratio: no value outside 0 to 100 %.
    Percent,
    /// The total of a counter, multiplied by this factor.
    Total(f64),
    /// The total of a 32-bit counter that wraps, multiplied by this factor.
    Wrapping(f64),
    /// 1 if the value equals this one, else 0.
    Is(u64),
    /// A state: the value of the attribute that the function returns.
    State(&'static pulsetrain_semconv::Attribute, fn(u64) -> &'static str),
    /// The current value, decoded by this function.
    Decoded(fn(u64) -> f64),
}

/// The context of a query.
pub(crate) struct QueryContext<'a, 'nvml> {
    /// The GPU or the MIG device.
    pub(crate) device: &'a Device<'nvml>,
    /// The processes on it, as they were listed last.
    pub(crate) processes: Result<&'a [GpuProcess], Reason>,
    /// The times up to which the driver's buffers were drained; a row advances its own.
    pub(crate) seen: &'a Seen,
    /// The number of fans.
    pub(crate) fans: u32,
    /// The driver's own latency of the fields of this pass; `None` if it answered none.
    pub(crate) fields_latency: Option<Duration>,
}

/// The times up to which the driver's buffers were drained, in microseconds of the driver's clock.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Samples of the power.
    pub(crate) power: std::cell::Cell<u64>,
    /// Samples of the utilization.
    pub(crate) utilization: std::cell::Cell<u64>,
    /// The newest sample of each process.
    pub(crate) processes: std::cell::RefCell<std::collections::BTreeMap<u32, u64>>,
}

/// The reason that a row has no answer.
#[derive(Debug)]
pub(crate) enum QueryError {
    /// An error of NVML.
    Nvml(NvmlError),
    /// A reason that is known without an error of NVML.
    Because(Reason),
}

impl From<NvmlError> for QueryError {
    fn from(error: NvmlError) -> Self {
        Self::Nvml(error)
    }
}

impl Row {
    /// Returns all metrics that the row fills.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &'static Metric> + use<> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }

    /// Returns whether an answer fills a metric.
    pub(crate) fn fills(&self, metric: &Metric) -> bool {
        self.metrics().any(|own| own.ordinal == metric.ordinal)
    }

    /// Creates a row with its own call.
    pub(crate) const fn call(
        metric: &'static Metric,
        call: &'static str,
        cadence: Cadence,
        absent: &'static str,
        read: fn(&QueryContext<'_, '_>, &mut Readings) -> Result<(), QueryError>,
    ) -> Self {
        Self::new(metric, call, cadence, absent, Read::Call(read))
    }

    /// Creates a row whose call returns the current value of one series.
    pub(crate) const fn value(
        metric: &'static Metric,
        labels: Fixed,
        call: &'static str,
        cadence: Cadence,
        absent: &'static str,
        read: fn(&QueryContext<'_, '_>) -> Result<f64, QueryError>,
    ) -> Self {
        Self::new(metric, call, cadence, absent, Read::Value(labels, read))
    }

    /// Queries the driver if the row has its own call.
    pub(crate) fn query(
        &self,
        gpu: &QueryContext<'_, '_>,
        out: &mut Readings,
    ) -> Option<Result<(), QueryError>> {
        match self.read {
            Read::Call(read) => Some(read(gpu, out)),
            Read::Value(labels, read) => {
                Some(read(gpu).map(|value| out.now(self.metric, Labels::fixed(labels), value)))
            }
            _ => None,
        }
    }

    /// Creates a row that reads a field.
    pub(crate) const fn field(
        metric: &'static Metric,
        (call, id): (&'static str, u32),
        labels: Fixed,
        value: FieldValue,
        cadence: Cadence,
        absent: &'static str,
    ) -> Self {
        let field = Field {
            id,
            scope: Scope::Part(0),
            labels,
            value,
        };
        Self::new(metric, call, cadence, absent, Read::Field(field))
    }

    /// Creates a row that reads a performance counter.
    pub(crate) const fn counter(
        metric: &'static Metric,
        call: &'static str,
        id: u32,
        labels: Fixed,
        scale: f64,
    ) -> Self {
        let absent = "the GPU is older than Hopper, or a profiler holds its counters";
        let counter = Read::Counter {
            id,
            labels,
            engine: None,
            scale,
        };
        Self::new(metric, call, Cadence::Tick, absent, counter)
    }

    /// Creates a row by the kind of its query.
    pub(crate) const fn new(
        metric: &'static Metric,
        call: &'static str,
        cadence: Cadence,
        absent: &'static str,
        read: Read,
    ) -> Self {
        Self {
            metric,
            also: &[],
            call,
            cadence,
            absent,
            instead_of: None,
            measures: None,
            read,
        }
    }

    /// Sets the scope of a field.
    pub(crate) const fn scoped(mut self, scope: Scope) -> Self {
        if let Read::Field(field) = &mut self.read {
            field.scope = scope;
        }
        self
    }

    /// Sets the engine of a performance counter.
    pub(crate) const fn engine(mut self, number: u32) -> Self {
        if let Read::Counter { engine, .. } = &mut self.read {
            *engine = Some(number);
        }
        self
    }

    /// Sets the meaning of a missing answer.
    pub(crate) const fn absent(mut self, meaning: &'static str) -> Self {
        self.absent = meaning;
        self
    }

    /// Sets the other metrics that the same answer fills.
    pub(crate) const fn also(mut self, metrics: &'static [&'static Metric]) -> Self {
        self.also = metrics;
        self
    }

    /// Restricts the row to GPUs whose sensors measure this part.
    pub(crate) const fn measuring(mut self, measured: Measured) -> Self {
        self.measures = Some(measured);
        self
    }

    /// Restricts the row to GPUs on which the row of `call` has no answer.
    pub(crate) const fn instead_of(mut self, call: &'static str) -> Self {
        self.instead_of = Some(call);
        self
    }
}

impl QueryError {
    /// Returns the reason.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Because(reason) => *reason,
            Self::Nvml(error) => reason(error),
        }
    }
}

/// Returns the reason that an error of NVML means for its row.
pub(crate) fn reason(error: &NvmlError) -> Reason {
    match error {
        // Older drivers refuse an unknown query as an invalid argument.
        NvmlError::NotSupported | NvmlError::InvalidArg | NvmlError::UnexpectedVariant(_) => {
            Reason::NotSupported
        }
        NvmlError::NoPermission => Reason::NoPermission,
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Reason::MissingSymbol,
        NvmlError::GpuLost | NvmlError::ResetRequired => Reason::GpuLost,
        NvmlError::NotFound | NvmlError::NoData => Reason::NoData,
        _ => Reason::DriverError,
    }
}

/// Fails all rows of a call, by their indexes: the first with the error, which may concern more than its row, the others with its
/// reason.
pub(crate) fn refuse_all(
    places: impl Iterator<Item = usize>,
    error: NvmlError,
) -> Vec<(usize, Result<(), NvmlError>)> {
    let reason = reason(&error);
    let mut first = Some(error);
    let again = |place| (place, Err(first.take().unwrap_or_else(|| error_for(reason))));
    places.map(again).collect()
}

/// Returns an error with this reason, for rows that share the answer of another.
pub(crate) fn error_for(reason: Reason) -> NvmlError {
    match reason {
        Reason::NotSupported => NvmlError::NotSupported,
        Reason::NoPermission => NvmlError::NoPermission,
        Reason::MissingSymbol => NvmlError::FunctionNotFound,
        Reason::GpuLost => NvmlError::GpuLost,
        Reason::NoData => NvmlError::NoData,
        Reason::DriverError | Reason::TurnedOff => NvmlError::Unknown,
    }
}
