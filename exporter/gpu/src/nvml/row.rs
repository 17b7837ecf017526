//! What a row of the table is: which metric, how it is read, how often, and what it means that there is nothing.

use std::time::Duration;

use nvml_wrapper::{Device, error::NvmlError};
use pulsetrain_semconv::Metric;

use crate::{
    GpuProcess, Reason,
    reading::{Fixed, Readings},
};

pub(crate) use crate::reading::Cadence;

/// A row of the table: one thing to ask the driver.
pub(crate) struct Row {
    /// The metric that it fills.
    pub(crate) metric: &'static Metric,
    /// What the same answer fills besides; of a performance counter, the integral of its rate.
    pub(crate) also: &'static [&'static Metric],
    /// The call or the field of NVML.
    pub(crate) call: &'static str,
    /// How often it is asked.
    pub(crate) cadence: Cadence,
    /// What it means that there is no answer.
    pub(crate) absent: &'static str,
    /// The call of the row of the same metric in whose place it is asked, when that one has no answer.
    pub(crate) instead_of: Option<&'static str>,
    /// The part that its sensor has to measure; `None` where that makes no difference.
    pub(crate) measures: Option<Measured>,
    /// How it is asked.
    pub(crate) read: Read,
}

/// What the sensors measure where a call names no part of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// The GPU.
    Gpu,
    /// The module of GPU, CPU and memory (GH200).
    Module,
}

/// How something is asked.
pub(crate) enum Read {
    /// As one of many fields in one call.
    Field(Field),
    /// By a call of its own.
    Call(fn(&QueryContext<'_, '_>, &mut Readings) -> Result<(), QueryError>),
    /// As one of the performance counters between two passes.
    Counter {
        /// The counter, by its number in `nvml.h`.
        id: u32,
        /// Identifies its series among those of the metric.
        labels: Fixed,
        /// The number of the engine that it is of.
        engine: Option<u32>,
        /// What one of it is in the metric's unit.
        scale: f64,
    },
    /// As an event of the driver.
    Event,
}

/// A field (`nvmlDeviceGetFieldValues`).
pub(crate) struct Field {
    /// Its id in the numbering of NVML 12; the driver's own is found from it.
    pub(crate) id: u32,
    /// What of the GPU it is asked for.
    pub(crate) scope: Scope,
    /// Identifies its series among those of the metric.
    pub(crate) labels: Fixed,
    /// What its value is.
    pub(crate) value: FieldValue,
}

/// What of the GPU a field is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A part, by the number that NVML gives it; 0 for all of it.
    Part(u32),
    /// Each NVLink.
    EachNvlink,
    /// All NVLinks of the GPU in one, or each where that is configured.
    NvlinkCounter,
    /// Each link between GPU and CPU.
    EachC2c,
    /// Each preset profile of power smoothing.
    EachPowerProfile,
}

/// What the value of a field is.
#[derive(Clone, Copy)]
pub(crate) enum FieldValue {
    /// What it is now, times this.
    Now(f64),
    /// The same, of a setting: no value if nobody has set it.
    Settable(f64),
    /// A percentage, as a ratio: no value outside 0 to 100 %.
    Percent,
    /// What a counter has come to, times this.
    Total(f64),
    /// The same, of a counter with 32 bits that starts over.
    Wrapping(f64),
    /// Whether it is this.
    Is(u64),
    /// A state.
    State(&'static pulsetrain_semconv::Attribute, fn(u64) -> &'static str),
    /// What it is now, by this rule.
    Decoded(fn(u64) -> f64),
}

/// What a row asks.
pub(crate) struct QueryContext<'a, 'nvml> {
    /// The GPU or the MIG device.
    pub(crate) device: &'a Device<'nvml>,
    /// The processes on it, as they were listed last.
    pub(crate) processes: Result<&'a [GpuProcess], Reason>,
    /// The time up to which buffers were drained; the row moves its own on.
    pub(crate) seen: &'a Seen,
    /// How many fans there are.
    pub(crate) fans: u32,
    /// How long the driver took to answer the fields of this pass, by its own measure; `None` where it answered none.
    pub(crate) fields_latency: Option<Duration>,
}

/// Up to when the driver's buffers were drained, in its own microseconds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Samples of the power.
    pub(crate) power: std::cell::Cell<u64>,
    /// Samples of the utilization.
    pub(crate) utilization: std::cell::Cell<u64>,
    /// The newest sample of each process.
    pub(crate) processes: std::cell::RefCell<std::collections::BTreeMap<u32, u64>>,
}

/// Why a row has no answer.
#[derive(Debug)]
pub(crate) enum QueryError {
    /// An error of NVML.
    Nvml(NvmlError),
    /// We know so.
    Because(Reason),
}

impl From<NvmlError> for QueryError {
    fn from(error: NvmlError) -> Self {
        Self::Nvml(error)
    }
}

impl Row {
    /// All metrics that it fills.
    pub(crate) fn metrics(&self) -> impl Iterator<Item = &'static Metric> + use<> {
        std::iter::once(self.metric).chain(self.also.iter().copied())
    }

    /// Whether an answer fills a metric.
    pub(crate) fn fills(&self, metric: &Metric) -> bool {
        self.metrics().any(|own| own.ordinal == metric.ordinal)
    }

    /// A row that is asked by a call of its own.
    pub(crate) const fn call(
        metric: &'static Metric,
        call: &'static str,
        cadence: Cadence,
        absent: &'static str,
        read: fn(&QueryContext<'_, '_>, &mut Readings) -> Result<(), QueryError>,
    ) -> Self {
        Self::of(metric, call, cadence, absent, Read::Call(read))
    }

    /// A row that is one field of many.
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
        Self::of(metric, call, cadence, absent, Read::Field(field))
    }

    /// A row that is one performance counter of many.
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
        Self::of(metric, call, Cadence::Tick, absent, counter)
    }

    const fn of(
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

    /// The same, for a part of the GPU or for each of its links.
    pub(crate) const fn scoped(mut self, scope: Scope) -> Self {
        if let Read::Field(field) = &mut self.read {
            field.scope = scope;
        }
        self
    }

    /// The same, for one of several engines.
    pub(crate) const fn engine(mut self, number: u32) -> Self {
        if let Read::Counter { engine, .. } = &mut self.read {
            *engine = Some(number);
        }
        self
    }

    /// The same, with another meaning of no answer.
    pub(crate) const fn absent(mut self, meaning: &'static str) -> Self {
        self.absent = meaning;
        self
    }

    /// The same, whose answer fills these besides.
    pub(crate) const fn also(mut self, metrics: &'static [&'static Metric]) -> Self {
        self.also = metrics;
        self
    }

    /// The same, asked only where the sensors measure this.
    pub(crate) const fn measuring(mut self, measured: Measured) -> Self {
        self.measures = Some(measured);
        self
    }

    /// The same, asked only where the row of that call has no answer.
    pub(crate) const fn instead_of(mut self, call: &'static str) -> Self {
        self.instead_of = Some(call);
        self
    }
}

impl QueryError {
    /// Why, for people.
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Because(reason) => *reason,
            Self::Nvml(error) => reason(error),
        }
    }
}

/// The meaning of an error of NVML for its row.
pub(crate) fn reason(error: &NvmlError) -> Reason {
    match error {
        // Older drivers call what they do not know an invalid argument.
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

/// An error that means the reason, for rows that share the answer of another.
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
