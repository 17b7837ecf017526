//! The assignment of alerts to simulated jobs: faults that do not disturb each other share a job.

use std::collections::BTreeMap;

use pulsetrain_demo::{Fault, FaultRow, Workload};
use pulsetrain_grafana::alert::{Alert, Rules};

/// The ranks of a job with many faults; other jobs have two.
const RANKS: u32 = 4;

/// A job and the alerts that it must cause.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub(crate) workload: Workload,
    pub(crate) ranks: u32,
    /// Whether the job has the faults of several alerts.
    pub(crate) is_shared: bool,
    /// Faults, as on the command line of `pulsetrain demo`.
    pub(crate) faults: Vec<String>,
    pub(crate) alerts: Vec<&'a Alert>,
}

impl<'a> Job<'a> {
    /// Returns the jobs of all alerts that have a fault.
    pub(crate) fn all(rules: &'a Rules) -> Vec<Self> {
        let (mut shared, mut own) = (BTreeMap::new(), BTreeMap::new());
        for alert in rules.alerts().filter(|alert| !alert.demo.faults.is_empty()) {
            let workload = alert.demo.workload.as_deref().unwrap_or("sft");
            let new = |ranks, is_shared| Self {
                workload: workload.parse().expect("a workload of the demo"),
                ranks,
                is_shared,
                faults: Vec::new(),
                alerts: Vec::new(),
            };
            let job = if let Some(fault) = shareable(alert) {
                let job = shared.entry(workload).or_insert_with(|| new(RANKS, true));
                job.share(fault);
                job
            } else {
                let faults = &alert.demo.faults;
                let job = own.entry((workload, faults)).or_insert_with(|| new(2, false));
                job.faults.clone_from(faults);
                job
            };
            job.alerts.push(alert);
        }
        shared.into_values().chain(own.into_values()).collect()
    }

    /// Returns the parsed faults.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let faults = self.faults.iter();
        faults
            .map(|fault| fault.parse().expect("a fault of the demo"))
            .collect()
    }

    /// Returns the step after which all faults have ended; a fault that lasts until the end has then had its effect.
    pub(crate) fn last_step(&self) -> u64 {
        let faults = self.faults().into_iter();
        let last = faults.map(|fault| fault.step.unwrap_or(fault.row.step) + fault.row.lasts);
        last.max().unwrap_or_default()
    }

    /// Adds a fault, at its usual step and at one of the ranks except the first, in turn.
    fn share(&mut self, fault: &FaultRow) {
        let rank = 1 + self.faults.len() as u32 % (RANKS - 1);
        let rank = if fault.has_rank() {
            format!(":rank={rank}")
        } else {
            String::new()
        };
        self.faults.push(format!("{}@{}{rank}", fault.name, fault.step));
    }
}

/// Returns the fault of an alert if the job may have other faults too: the fault neither ends nor slows down the run, and its
/// effect on the training values opens no verdict.
fn shareable(alert: &Alert) -> Option<&'static FaultRow> {
    let [fault] = alert.demo.faults.as_slice() else {
        return None;
    };
    let fault = FaultRow::find(fault)?;
    let is_quiet = fault.verdict.is_none() || fault.verdict == Some("gpu_xid");
    (is_quiet && fault.lasts > 0).then_some(fault)
}
