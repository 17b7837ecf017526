//! A pass over one GPU or instance: the rows that are due are queried, fields in one call. A row without an answer is retried
//! with increasing delays, without end.

use std::time::Duration;

use nvml_wrapper::{Device, Nvml, error::NvmlError};
use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_semconv::{
    Metric,
    attribute::PROCESS_PID,
    metric::{GPU_FAULT_ACTIVE, GPU_XID_ERRORS},
};

use super::{
    counters::Counters,
    events::Registered,
    fields::Fields,
    row::{Cadence, Measured, QueryContext, QueryError, Read, Row, Seen, reason},
    rows,
};
use crate::{
    GpuConfig, GpuProcess, Reason, Unavailable,
    reading::{INFREQUENT_INTERVAL, Readings},
};

/// The longest delay before a row without an answer is retried.
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);
/// The first delay before a failed row is retried: the failure may be transient.
const FAILED: Duration = Duration::from_secs(5);
/// The tolerance of due times: a row that is due within it is read now instead of in the next pass.
const SLACK: Duration = Duration::from_millis(50);

/// The meaning of missing power and energy of the GPU if its sensors measure the module.
const OF_MODULE: &str =
    "the sensors measure the module of GPU and CPU alone: gpu.module_power and gpu.module_energy";

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The GPU was read.
    Read,
    /// The GPU does not answer.
    Lost,
    /// Every query about the GPU fails.
    Failing,
    /// NVML has to be loaded again.
    Gone,
}

/// The rows of one GPU or instance, with the state of each.
pub(super) struct Probe<'nvml> {
    rows: Vec<ProbedRow>,
    fields: Fields,
    counters: Counters<'nvml>,
    seen: Seen,
    fans: u32,
    again: Duration,
    changed: bool,
}

/// A row with its state on one device.
pub(super) struct ProbedRow {
    /// The row.
    pub(super) row: &'static Row,
    /// The meaning of a missing answer.
    meaning: &'static str,
    /// The index of the preferred row. This row is read only if the preferred one has no answer.
    preferred: Option<usize>,
    /// The time of the next query; `None` if the row is not read any more.
    due: Option<Instant>,
    /// The reason for a missing answer.
    refused: Option<Reason>,
    /// The last delay before a retry.
    wait: Duration,
}

impl ProbedRow {
    /// Returns whether it has an answer that fills a metric.
    fn fills(&self, metric: &Metric) -> bool {
        self.refused.is_none() && self.row.fills(metric)
    }
}

/// The input of a pass.
pub(super) struct Pass<'a, 'nvml> {
    /// The library.
    pub(super) nvml: &'nvml Nvml,
    /// The GPU or the instance to read.
    pub(super) device: &'a Device<'nvml>,
    /// For an instance: the GPU that it is on and the id of the GPU instance, by which its performance counters are read.
    pub(super) instance: Option<(&'a Device<'nvml>, u32)>,
    /// The processes, as listed last.
    pub(super) processes: Result<&'a [GpuProcess], Reason>,
    /// The time.
    pub(super) now: Instant,
}

impl<'nvml> Probe<'nvml> {
    /// Creates a probe of `rows`. All rows are due that are not turned off and that the sensors measure.
    pub(super) fn new(
        rows: impl Iterator<Item = &'static Row>,
        device: &Device<'_>,
        config: &GpuConfig,
    ) -> Self {
        let now = clock::now();
        let measured = rows::measured(device);
        let mut kept: Vec<ProbedRow> = Vec::new();
        for row in rows {
            let preferred = row.instead_of.and_then(|call| {
                let is_preferred = |other: &ProbedRow| other.row.call == call && other.row.fills(row.metric);
                kept.iter().position(is_preferred)
            });
            let is_of_another = row.measures.is_some_and(|wanted| wanted != measured);
            let refused = if is_of_another {
                Some(Reason::NotSupported)
            } else {
                is_turned_off(row, config).then_some(Reason::TurnedOff)
            };
            kept.push(ProbedRow {
                row,
                meaning: match measured {
                    Measured::Module if is_of_another => OF_MODULE,
                    _ => row.absent,
                },
                preferred,
                due: refused.is_none().then_some(now),
                refused,
                wait: Duration::ZERO,
            });
        }
        Self {
            rows: kept,
            fields: Fields::new(config.reads_each_nvlink()),
            counters: Counters::default(),
            seen: Seen::default(),
            fans: device.num_fans().unwrap_or_default(),
            again: config.retry,
            changed: true,
        }
    }

    /// Queries the rows that are due.
    pub(super) fn read(&mut self, pass: &Pass<'_, 'nvml>, out: &mut Readings) -> Outcome {
        let due: Vec<usize> = (0..self.rows.len())
            .filter(|place| self.is_due(*place, pass.now))
            .collect();
        let mut tally = Tally::default();
        self.read_fields(&due, pass, out, &mut tally);
        if let Some(outcome) = tally.fatal {
            return outcome;
        }
        self.read_calls(&due, pass, out, &mut tally);
        if let Some(outcome) = tally.fatal {
            return outcome;
        }
        self.read_counters(&due, pass, out, &mut tally);
        tally.fatal.unwrap_or_else(|| tally.at_end())
    }

    /// Clears the failures of rows and makes these rows due: the GPU failed, not the rows.
    pub(super) fn forget_failures(&mut self) {
        let now = clock::now();
        for kept in &mut self.rows {
            if kept.refused == Some(Reason::DriverError) {
                (kept.refused, kept.due, kept.wait) = (None, Some(now), Duration::ZERO);
            }
        }
        self.changed = true;
    }

    /// Makes all rows due that have an answer.
    pub(super) fn mark_all_rows_due(&mut self) {
        let now = clock::now();
        let is_asked =
            |kept: &&mut ProbedRow| kept.refused.is_none() && !matches!(kept.row.read, Read::Event);
        for kept in self.rows.iter_mut().filter(is_asked) {
            kept.due = Some(now);
        }
    }

    fn is_due(&self, place: usize, now: Instant) -> bool {
        let kept = &self.rows[place];
        let wanted = kept
            .preferred
            .is_none_or(|preferred| self.rows[preferred].refused.is_some());
        wanted && kept.due.is_some_and(|due| due <= now + SLACK)
    }

    fn read_fields(&mut self, due: &[usize], pass: &Pass<'_, 'nvml>, out: &mut Readings, tally: &mut Tally) {
        let rows = due.iter().filter_map(|place| match &self.rows[*place].row.read {
            Read::Field(field) => Some((*place, self.rows[*place].row, field)),
            _ => None,
        });
        let rows: Vec<_> = rows.collect();
        let answers = self.fields.ask(pass.nvml, pass.device, &rows, out);
        for (place, answer) in answers {
            self.settle(place, pass.now, answer.map_err(QueryError::from), tally);
        }
    }

    fn read_calls(&mut self, due: &[usize], pass: &Pass<'_, 'nvml>, out: &mut Readings, tally: &mut Tally) {
        let entity = out.entity;
        for place in due {
            let row = self.rows[*place].row;
            let asked = QueryContext {
                device: pass.device,
                processes: pass.processes,
                seen: &self.seen,
                fans: self.fans,
                fields_latency: self.fields.latency(),
            };
            out.cadence = row.cadence;
            let Some(answer) = row.query(&asked, out) else {
                continue;
            };
            out.entity = entity;
            self.settle(*place, pass.now, answer, tally);
            if tally.fatal.is_some() {
                return;
            }
        }
    }

    fn read_counters(
        &mut self,
        due: &[usize],
        pass: &Pass<'_, 'nvml>,
        out: &mut Readings,
        tally: &mut Tally,
    ) {
        let wanted: Vec<(usize, &'static Row)> = due
            .iter()
            .map(|place| (*place, self.rows[*place].row))
            .filter(|(_, row)| matches!(row.read, Read::Counter { .. }))
            .collect();
        if wanted.is_empty() {
            return;
        }
        for (place, answer) in self.counters.ask(pass, &wanted, out) {
            self.settle(place, pass.now, answer.map_err(QueryError::from), tally);
        }
    }

    /// Records the outcome of a row, and sets the time of its next query.
    fn settle(&mut self, place: usize, now: Instant, answer: Result<(), QueryError>, tally: &mut Tally) {
        tally.count(&answer);
        let again = self.again;
        let kept = &mut self.rows[place];
        let before = kept.refused;
        match answer {
            Ok(()) => {
                kept.refused = None;
                kept.wait = Duration::ZERO;
                kept.due = match kept.row.cadence {
                    Cadence::Tick => Some(now),
                    Cadence::Infrequent => Some(clock::later(now, INFREQUENT_INTERVAL)),
                    Cadence::Once => None,
                };
            }
            Err(refusal) => {
                let reason = refusal.reason();
                let first = match reason {
                    Reason::NoData | Reason::DriverError => FAILED.min(again),
                    _ => again,
                };
                kept.refused = Some(reason);
                kept.wait = kept.wait.saturating_mul(2).clamp(first, AGAIN_AT_MOST);
                // An idle engine has no value; a query together with the others costs nothing.
                if reason == Reason::NoData && matches!(kept.row.read, Read::Counter { .. }) {
                    kept.wait = Duration::ZERO;
                }
                kept.due = Some(clock::later(now, kept.wait));
            }
        }
        self.changed |= before != self.rows[place].refused;
    }

    /// Records which events the driver reports.
    pub(super) fn settle_events(&mut self, registered: &Registered<'_>) {
        for kept in self
            .rows
            .iter_mut()
            .filter(|kept| matches!(kept.row.read, Read::Event))
        {
            let is_xid = kept.row.metric.ordinal == GPU_XID_ERRORS.ordinal;
            kept.refused = if is_xid {
                registered.xids_unavailable
            } else {
                registered.other_events_unavailable
            };
            kept.due = None;
            self.changed = true;
        }
    }

    /// Returns the metrics without an answer, or `None` if they have not changed since the last call.
    pub(super) fn changed_unavailable(&mut self) -> Option<Vec<Unavailable>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let rows = &self.rows;
        let unavailable = rows.iter().filter_map(|kept| {
            // A row with a preferred row is missing only if that one is missing too.
            let wanted = kept
                .preferred
                .is_none_or(|preferred| rows[preferred].refused.is_some());
            let reason = kept.refused.filter(|_| wanted)?;
            let replaced = move |metric: &Metric| {
                let mut instead = rows
                    .iter()
                    .filter(|other| other.row.instead_of == Some(kept.row.call));
                instead.any(|other| other.fills(metric))
            };
            let of_metric = move |metric: &'static Metric| Unavailable {
                metric,
                call: kept.row.call,
                reason,
                meaning: kept.meaning,
                // A lost GPU is known without a row.
                partly: metric.ordinal == GPU_FAULT_ACTIVE.ordinal
                    || rows.iter().any(|other| other.fills(metric)),
            };
            let missing = kept.row.metrics().filter(move |metric| !replaced(metric));
            Some(missing.map(of_metric))
        });
        let unavailable = unavailable.flatten();
        Some(unavailable.collect())
    }
}

/// Returns whether the configuration turns off a row: a performance counter, or a metric of processes.
fn is_turned_off(row: &Row, config: &GpuConfig) -> bool {
    let of_process = row
        .metric
        .attributes
        .iter()
        .any(|used| used.attribute.name == PROCESS_PID.name);
    !config.profiling && matches!(row.read, Read::Counter { .. }) || !config.processes && of_process
}

/// The combined outcome of the rows of a pass.
#[derive(Debug, Default)]
struct Tally {
    answered: u32,
    failed: u32,
    /// The outcome that ends the pass early.
    fatal: Option<Outcome>,
}

impl Tally {
    fn count(&mut self, answer: &Result<(), QueryError>) {
        match answer {
            Ok(()) => self.answered += 1,
            Err(QueryError::Nvml(error)) => match outcome_of(error) {
                Some(fatal) => self.fatal = Some(fatal),
                None if reason(error) == Reason::DriverError => self.failed += 1,
                None => {}
            },
            Err(QueryError::Because(_)) => {}
        }
    }

    fn at_end(&self) -> Outcome {
        if self.answered == 0 && self.failed > 0 {
            Outcome::Failing
        } else {
            Outcome::Read
        }
    }
}

/// Returns the outcome of an error that affects more than its row, or `None`.
pub(super) fn outcome_of(error: &NvmlError) -> Option<Outcome> {
    match error {
        NvmlError::GpuLost | NvmlError::ResetRequired => Some(Outcome::Lost),
        NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch => {
            Some(Outcome::Gone)
        }
        _ => None,
    }
}
