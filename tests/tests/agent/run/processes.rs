//! The processes of a running `pulsetrain run`: keeper, witness, copiers, trainer and exporter.

use std::fs;

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, getpgid},
};
use pulsetrain_tests::wait_until;

/// The processes that a keeper has started.
pub(crate) struct Processes {
    pub(crate) keeper: Pid,
    pub(crate) trainer: Pid,
    pub(crate) witness: Pid,
    pub(crate) copiers: Vec<Pid>,
    pub(crate) exporter: Pid,
}

impl Processes {
    /// Waits until a keeper with a trainer on pipes has started all of its processes.
    pub(crate) fn started_by(keeper: Pid) -> Self {
        let mut found = None;
        wait_until("all processes are started", || {
            found = Self::read(keeper);
            found.is_some()
        });
        found.expect("the wait ends with them")
    }

    fn read(keeper: Pid) -> Option<Self> {
        let children = children(keeper);
        let is_ours = |pid: &Pid| comm(*pid) == "pulsetrain-run";
        let is_exporter = |pid: &Pid| arguments(*pid).contains("run-exporter");
        let is_witness = |pid: &Pid| getpgid(Some(*pid)) == getpgid(Some(keeper));
        let (ours, others): (Vec<Pid>, Vec<Pid>) = children.into_iter().partition(is_ours);
        let (exporters, forks): (Vec<Pid>, Vec<Pid>) = ours.into_iter().partition(is_exporter);
        let (witnesses, copiers): (Vec<Pid>, Vec<Pid>) = forks.into_iter().partition(is_witness);
        let has_groups = copiers.iter().all(|pid| getpgid(Some(*pid)) == Ok(*pid));
        match (&others[..], &exporters[..], &witnesses[..], copiers.len()) {
            ([trainer], [exporter], [witness], 2) if has_groups => Some(Self {
                keeper,
                trainer: *trainer,
                witness: *witness,
                copiers,
                exporter: *exporter,
            }),
            _ => None,
        }
    }

    /// Returns all processes, as a scheduler signals them.
    pub(crate) fn all(&self) -> Vec<Pid> {
        let mut all = vec![self.exporter, self.witness, self.keeper, self.trainer];
        all.extend(&self.copiers);
        all
    }
}

/// Kills a process, which must exist.
pub(crate) fn kill_now(pid: Pid) {
    kill(pid, Signal::SIGKILL).expect("the process is there");
}

/// Returns whether a process has ended; its parent may not have waited for it.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_none_or(|state| state.is_empty() || state.starts_with('Z'))
}

fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("Linux has /proc");
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(") ").next().unwrap_or_default();
        let mut fields = fields.split(' ');
        let is_running = fields.next() != Some("Z");
        is_running && fields.next().is_some_and(|ppid| ppid == parent.to_string())
    };
    pids.filter(is_child).map(Pid::from_raw).collect()
}

/// Returns the name that `pkill -x` compares.
pub(crate) fn comm(pid: Pid) -> String {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}

fn arguments(pid: Pid) -> String {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&arguments).into_owned()
}
