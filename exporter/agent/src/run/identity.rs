//! The identity of a run from the environment: an id that all ranks share, the rank, and the number of restarts.

pub(super) use pulsetrain_record::launcher::RUN_ID;
use pulsetrain_record::launcher::{JOB_IDS, LOCAL_RANKS};
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
        }
    }

    /// Returns a warning on rank 0 that other ranks become separate runs, because no variable sets a common run id.
    pub(super) fn warning(&self) -> Option<String> {
        let ranks = self.member.world_size.filter(|ranks| *ranks > 1)?;
        (self.is_new && self.member.rank == 0).then(|| {
            format!(
                "no id names the run of all {ranks} ranks (torchrun sets TORCHELASTIC_RUN_ID=none without --rdzv-id): each rank \
                 becomes a run of its own, with traces of its own; set {RUN_ID} to one value on all ranks, or give torchrun \
                 --rdzv-id, or `pulsetrain run` --run-id"
            )
        })
    }
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
        let warning = identity(None, &ranks("0", "4")).warning().unwrap();
        assert!(
            warning.contains("all 4 ranks") && warning.contains("PULSETRAIN_RUN_ID"),
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
            silent.iter().all(|identity| identity.warning().is_none()),
            "{silent:?}"
        );
    }

    #[test]
    fn a_restart_is_another_attempt_of_the_same_run() {
        let own = ("TORCHELASTIC_RESTART_COUNT", "3");
        let attempt = |set: &[(&str, &str)]| identity(None, set).member.attempt;
        assert_eq!(attempt(&[own]), 3);
        assert_eq!(
            attempt(&[own, ("PULSETRAIN_ATTEMPT", "4")]),
            4,
            "the same on all nodes"
        );
    }
}
