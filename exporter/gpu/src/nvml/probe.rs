//! One pass over one GPU or instance: what is due is asked, fields all in one call, and what has no answer is asked again
//! later and later, but never given up.

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
use crate::{GpuConfig, GpuProcess, Reason, Unavailable, reading::Readings};

/// How often what changes seldom is asked.
pub(super) const SELDOM: Duration = Duration::from_secs(5);
/// How long until what has no answer is asked again, at most.
const AGAIN_AT_MOST: Duration = Duration::from_secs(3600);
/// How long until what failed is asked again, the first time: it may have been a moment's trouble.
const FAILED: Duration = Duration::from_secs(5);
/// What is due within this is due now, so that no pass is missed by a hair.
const SLACK: Duration = Duration::from_millis(50);

/// What it means that the power and the energy of the GPU are missing where its sensors measure more.
const OF_MODULE: &str =
    "the sensors measure the module of GPU and CPU alone: gpu.module_power and gpu.module_energy";

/// What came of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was read.
    Read,
    /// The GPU does not answer.
    Lost,
    /// The driver fails at everything that it is asked about the GPU.
    Failing,
    /// NVML has to be loaded again.
    Gone,
}

/// The rows of one GPU or instance, and what is known of each.
pub(super) struct Probe<'nvml> {
    rows: Vec<ProbedRow>,
    fields: Fields,
    counters: Counters<'nvml>,
    seen: Seen,
    fans: u32,
    again: Duration,
    changed: bool,
}

/// A row, with what is known of it here.
pub(super) struct ProbedRow {
    /// The row.
    pub(super) row: &'static Row,
    /// What it means that there is no answer.
    meaning: &'static str,
    /// The place of the row in whose place it is asked.
    preferred: Option<usize>,
    /// When it is read next; `None` if it is not read any more.
    due: Option<Instant>,
    /// Why it has no answer.
    refused: Option<Reason>,
    /// How long it was last left alone.
    wait: Duration,
}

impl ProbedRow {
    /// Whether it has an answer that fills a metric.
    fn fills(&self, metric: &Metric) -> bool {
        self.refused.is_none() && self.row.fills(metric)
    }
}

/// What a pass needs to know.
pub(super) struct Pass<'a, 'nvml> {
    /// The library.
    pub(super) nvml: &'nvml Nvml,
    /// What is asked.
    pub(super) device: &'a Device<'nvml>,
    /// The GPU and the instance on it whose counters are read, for an instance.
    pub(super) instance: Option<(&'a Device<'nvml>, u32)>,
    /// The processes, as listed last.
    pub(super) processes: Result<&'a [GpuProcess], Reason>,
    /// The time.
    pub(super) now: Instant,
}

impl<'nvml> Probe<'nvml> {
    /// A probe of `rows`, all of them due.
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

    /// Asks what is due.
    pub(super) fn read(&mut self, pass: &Pass<'_, 'nvml>, out: &mut Readings) -> Outcome {
        let due: Vec<usize> = (0..self.rows.len())
            .filter(|place| self.is_due(*place, pass.now))
            .collect();
        let mut tally = Tally::default();
        self.read_fields(&due, pass, out, &mut tally);
        if let Some(outcome) = tally.outcome() {
            return outcome;
        }
        self.read_calls(&due, pass, out, &mut tally);
        if let Some(outcome) = tally.outcome() {
            return outcome;
        }
        self.read_counters(&due, pass, out, &mut tally);
        tally.outcome().unwrap_or_else(|| tally.at_end())
    }

    /// Forgets what failed, and makes it due: the GPU failed, not the rows.
    pub(super) fn forget_failures(&mut self) {
        let now = clock::now();
        for kept in &mut self.rows {
            if kept.refused == Some(Reason::DriverError) {
                (kept.refused, kept.due, kept.wait) = (None, Some(now), Duration::ZERO);
            }
        }
        self.changed = true;
    }

    /// Makes everything due that has an answer.
    pub(super) fn ask_all_again(&mut self) {
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
            let Read::Call(call) = self.rows[*place].row.read else {
                continue;
            };
            let asked = QueryContext {
                device: pass.device,
                processes: pass.processes,
                seen: &self.seen,
                fans: self.fans,
                fields_latency: self.fields.latency(),
            };
            out.cadence = self.rows[*place].row.cadence;
            let answer = call(&asked, out);
            out.entity = entity;
            self.settle(*place, pass.now, answer, tally);
            if tally.outcome().is_some() {
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

    /// Writes down what became of a row, and when it is asked next.
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
                    Cadence::Seldom => Some(clock::later(now, SELDOM)),
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
                // An engine that did nothing has no value; to ask it with the others costs nothing.
                if reason == Reason::NoData && matches!(kept.row.read, Read::Counter { .. }) {
                    kept.wait = Duration::ZERO;
                }
                kept.due = Some(clock::later(now, kept.wait));
            }
        }
        self.changed |= before != self.rows[place].refused;
    }

    /// What became of the events of the driver.
    pub(super) fn settle_events(&mut self, registered: &Registered<'_>) {
        for kept in self
            .rows
            .iter_mut()
            .filter(|kept| matches!(kept.row.read, Read::Event))
        {
            let is_xid = kept.row.metric.ordinal == GPU_XID_ERRORS.ordinal;
            kept.refused = if is_xid {
                registered.no_xids
            } else {
                registered.no_others
            };
            kept.due = None;
            self.changed = true;
        }
    }

    /// What has no answer, where that has changed since it was asked for last.
    pub(super) fn changed_unavailable(&mut self) -> Option<Vec<Unavailable>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let rows = &self.rows;
        let unavailable = rows.iter().filter_map(|kept| {
            // What is asked in the place of another is missing only where that one is.
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
                // That a GPU is lost needs no row to be known.
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

/// Performance counters and processes can be turned off.
fn is_turned_off(row: &Row, config: &GpuConfig) -> bool {
    let of_process = row
        .metric
        .attributes
        .iter()
        .any(|used| used.attribute.name == PROCESS_PID.name);
    !config.profiling && matches!(row.read, Read::Counter { .. }) || !config.processes && of_process
}

/// How the rows of a pass fared together.
#[derive(Debug, Default)]
struct Tally {
    answered: u32,
    failed: u32,
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

    /// What makes it pointless to go on.
    fn outcome(&self) -> Option<Outcome> {
        self.fatal
    }

    fn at_end(&self) -> Outcome {
        if self.answered == 0 && self.failed > 0 {
            Outcome::Failing
        } else {
            Outcome::Read
        }
    }
}

/// The meaning of an error for more than its row.
pub(super) fn outcome_of(error: &NvmlError) -> Option<Outcome> {
    match error {
        NvmlError::GpuLost | NvmlError::ResetRequired => Some(Outcome::Lost),
        NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch => {
            Some(Outcome::Gone)
        }
        _ => None,
    }
}
