//! The identity of a run from the environment: an id that all ranks share, the rank, and the number of restarts.

use pulsetrain_pipeline::Problem;
pub(super) use pulsetrain_record::launcher::RUN_ID;
use pulsetrain_record::launcher::{JOB_IDS, LOCAL_RANKS, RESTARTS, TORCHRUN_NODES, TORCHRUN_RESTARTS};
use pulsetrain_tail::Member;

/// The identity of a run, from the environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The run id.
    pub(super) id: String,
    /// The rank and the attempt of this process.
    pub(super) member: Member,
    /// Whether the id was generated for this process, so that other ranks do not share it.
    is_new: bool,
    /// Whether torchrun restarted this process in a run of several nodes and no variable numbers the attempt for all of them.
    has_unknown_attempt: bool,
}

impl Identity {
    /// Returns the identity from the command line, or else from Pulsetrain's variable, or else from the launcher's, or
    /// else a new one.
    pub(super) fn new(
        asked: Option<String>,
        variable: impl Fn(&str) -> Option<String>,
        new: impl FnOnce() -> String,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        // torchrun sets "none" if no id was given.
        let job = || {
            JOB_IDS
                .iter()
                .find_map(|name| set(name).filter(|id| id != "none"))
        };
        let shared = asked.or_else(|| set(RUN_ID)).or_else(job);
        Self {
            is_new: shared.is_none(),
            id: shared.unwrap_or_else(new),
            member: Member::of_environment(&variable),
            has_unknown_attempt: has_unknown_attempt(set),
        }
    }

    /// Returns what the user has to set so that the ranks agree on the run and on its attempt.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Problem> {
        self.separate_runs().into_iter().chain(self.unknown_attempt())
    }

    /// Returns a warning on rank 0 that other ranks become separate runs, because no variable sets a common run id.
    fn separate_runs(&self) -> Option<Problem> {
        let ranks = self.member.world_size.filter(|ranks| *ranks > 1)?;
        (self.is_new && self.member.rank == 0).then(|| {
            let what = format!(
                "no id names the run of all {ranks} ranks (torchrun sets TORCHELASTIC_RUN_ID=none without --rdzv-id): each rank \
                 becomes a run of its own, with traces of its own"
            );
            Problem::new(what).with_remedy(format!(
                "set {RUN_ID} to one value on all ranks, or give torchrun --rdzv-id, or `pulsetrain run` --run-id"
            ))
        })
    }

    /// Returns a warning on the first rank of a node that the attempt after a restart has the number of the first one.
    fn unknown_attempt(&self) -> Option<Problem> {
        let is_first = self.member.local_rank.unwrap_or_default() == 0;
        (self.has_unknown_attempt && is_first).then(|| {
            let what = format!(
                "torchrun restarted this node, but each node of a run counts its own restarts: train.attempt is {}, and repeated steps \
                 are in the traces of their first execution",
                self.member.attempt
            );
            Problem::new(what).with_remedy(format!("set {} to one number on all nodes", RESTARTS[0]))
        })
    }
}

/// Returns whether torchrun restarted the process, while no variable has the same attempt on all of its nodes.
fn has_unknown_attempt(set: impl Fn(&str) -> Option<String>) -> bool {
    let number = |name: &str| set(name)?.trim().parse::<i64>().ok();
    let is_restarted = number(TORCHRUN_RESTARTS).is_some_and(|restarts| restarts > 0);
    let has_nodes = number(TORCHRUN_NODES).is_some_and(|nodes| nodes > 1);
    let agreed = RESTARTS.iter().filter(|name| **name != TORCHRUN_RESTARTS);
    is_restarted && has_nodes && agreed.copied().find_map(number).is_none()
}

/// Returns whether this process is the first one of the run on its machine.
pub(super) fn is_first_here(variable: impl Fn(&str) -> Option<String>) -> bool {
    let local = LOCAL_RANKS.iter().find_map(|name| variable(name));
    local.is_none_or(|rank| rank.trim() == "0")
}

/// Returns a unique id.
pub(super) fn new_id() -> String {
    format!("{:016x}", fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(asked: Option<&str>, variables: &[(&str, &str)]) -> Identity {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Identity::new(asked.map(str::to_owned), variable, || "new".to_owned())
    }

    #[test]
    fn only_the_first_local_rank_is_the_first_on_the_host() {
        let first = |variables: &[(&str, &str)]| {
            is_first_here(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(first(&[]), "alone");
        assert!(first(&[("LOCAL_RANK", "0"), ("RANK", "8")]));
        assert!(!first(&[("LOCAL_RANK", "3")]));
        assert!(!first(&[("SLURM_LOCALID", "1")]));
    }

    #[test]
    fn ranks_of_one_job_share_the_run_id() {
        let [first, second] =
            ["0", "1"].map(|rank| identity(None, &[("SLURM_JOB_ID", "77"), ("SLURM_PROCID", rank)]));
        assert_eq!((first.id.as_str(), first.member.rank), ("77", 0));
        assert_eq!((second.id.as_str(), second.member.rank), ("77", 1));
    }

    #[test]
    fn arguments_override_the_environment() {
        let set = [("PULSETRAIN_RUN_ID", "ours"), ("TORCHELASTIC_RUN_ID", "theirs")];
        assert_eq!(identity(Some("asked"), &set).id, "asked");
        assert_eq!(identity(None, &set).id, "ours");
        assert_eq!(identity(None, &set[1..]).id, "theirs");
        assert_eq!(
            identity(
                None,
                &[("TORCHELASTIC_RUN_ID", "none"), ("PULSETRAIN_RUN_ID", " ")]
            )
            .id,
            "new"
        );
    }

    #[test]
    fn missing_common_run_id_is_warned_about_once() {
        let none = ("TORCHELASTIC_RUN_ID", "none");
        let ranks = |rank, size| [none, ("RANK", rank), ("WORLD_SIZE", size)];
        let warning = identity(None, &ranks("0", "4")).separate_runs().unwrap();
        assert!(
            warning.what.contains("all 4 ranks")
                && (warning.remedy.as_ref()).is_some_and(|remedy| remedy.contains("PULSETRAIN_RUN_ID")),
            "{warning}"
        );
        let silent = [
            identity(None, &ranks("1", "4")),
            identity(None, &ranks("0", "1")),
            identity(None, &[none]),
            identity(Some("asked"), &ranks("0", "4")),
            identity(
                None,
                &[none, ("SLURM_JOB_ID", "7"), ("RANK", "0"), ("WORLD_SIZE", "4")],
            ),
        ];
        assert!(
            silent.iter().all(|identity| identity.warnings().next().is_none()),
            "{silent:?}"
        );
    }

    #[test]
    fn a_restart_is_another_attempt_of_the_same_run() {
        let own = ("TORCHELASTIC_RESTART_COUNT", "3");
        let attempt = |set: &[(&str, &str)]| {
            let identity = identity(Some("id"), set);
            (identity.member.attempt, identity.warnings().next().is_some())
        };
        let node = ("GROUP_WORLD_SIZE", "1");
        assert_eq!(attempt(&[own]), (3, false));
        assert_eq!(attempt(&[own, node]), (3, false));
        let nodes = ("GROUP_WORLD_SIZE", "2");
        assert_eq!(
            attempt(&[own, nodes]),
            (0, true),
            "another node counted no restart"
        );
        assert_eq!(attempt(&[("TORCHELASTIC_RESTART_COUNT", "0"), nodes]), (0, false));
        assert_eq!(attempt(&[own, nodes, ("SLURM_RESTART_COUNT", "1")]), (1, false));
        assert_eq!(attempt(&[own, nodes, ("PULSETRAIN_ATTEMPT", "4")]), (4, false));
    }
}
