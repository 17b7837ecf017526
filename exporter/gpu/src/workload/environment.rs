//! The run of a process, from the environment variables of its launcher.

use pulsetrain_record::launcher::{JOB_IDS, LOCAL_RANKS, RANKS, RUN_ID, SLURM, WORLD_SIZES};

use super::{facts::Workload, visible::VisibleDevices};

/// The variable with the GPUs of a process.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// The variable with CUDA's order of GPUs, and the value for NVML's order.
const ORDER: &str = "CUDA_DEVICE_ORDER";
const BY_BUS: &str = "PCI_BUS_ID";

/// The limit of bytes that are read from the environment of a process.
pub(super) const MAX_BYTES: u64 = 1 << 20;

impl Workload {
    /// Returns the workload that the variables describe.
    pub fn of_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let first = |names: &[&str]| names.iter().find_map(|name| set(name));
        let number = |names: &[&str]| first(names)?.trim().parse().ok();
        // torchrun sets "none" if it has no id.
        let job = || {
            JOB_IDS
                .iter()
                .find_map(|name| set(name).filter(|id| id != "none"))
        };
        Self {
            run: set(RUN_ID).or_else(job).map(Into::into),
            rank: number(&RANKS),
            local_rank: number(&LOCAL_RANKS),
            world_size: number(&WORLD_SIZES),
            slurm: SLURM.map(|(_, name)| set(name).map(Into::into)),
            visible: VisibleDevices::parse(variable(VISIBLE).as_deref()),
            counts_by_bus: set(ORDER).is_some_and(|order| order.trim() == BY_BUS),
            ..Self::default()
        }
    }

    /// Returns the workload of a run with this id that is about to be started. If several ranks may use all GPUs, the rank of a
    /// GPU is unknown and left out.
    pub fn of_run(id: &str, variable: impl Fn(&str) -> Option<String>) -> Self {
        let found = Self::of_variables(variable);
        let has_its_own = found.world_size == Some(1) || found.visible != VisibleDevices::All;
        Self {
            run: Some(id.into()),
            rank: found.rank.filter(|_| has_its_own),
            local_rank: found.local_rank.filter(|_| has_its_own),
            ..found
        }
    }

    /// Reads the environment of a process in the format of `/proc/PID/environ`: `NAME=value`, each ended by a zero byte.
    pub(super) fn of_environ(environ: &[u8]) -> Self {
        Self::of_variables(|name| {
            let entry = environ.split(|byte| *byte == 0).find_map(|entry| {
                let rest = entry.strip_prefix(name.as_bytes())?;
                rest.strip_prefix(b"=")
            })?;
            Some(String::from_utf8_lossy(entry).into_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_environ(environ: &str) -> Workload {
        Workload::of_environ(environ.replace(' ', "\0").as_bytes())
    }

    #[test]
    fn torchrun_slurm_and_mpi_variables_give_the_same_workload() {
        for environ in [
            "PATH=/bin RANK=5 LOCAL_RANK=1 WORLD_SIZE=8 TORCHELASTIC_RUN_ID=job7",
            "SLURM_PROCID=5 SLURM_LOCALID=1 SLURM_NTASKS=8 SLURM_JOB_ID=job7",
            "OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=8 PULSETRAIN_RUN_ID=job7",
        ] {
            let workload = from_environ(environ);
            assert_eq!(workload.run.as_deref(), Some("job7"), "{environ}");
            let numbers = (workload.rank, workload.local_rank, workload.world_size);
            assert_eq!(numbers, (Some(5), Some(1), Some(8)), "{environ}");
        }
    }

    #[test]
    fn launched_run_has_a_rank_only_if_it_owns_its_gpus() {
        let rank = |variables: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name)?;
                Some(found.1.to_owned())
            };
            Workload::of_run("r", variable).rank
        };
        assert_eq!(rank(&[("RANK", "0"), ("WORLD_SIZE", "8")]), None);
        assert_eq!(rank(&[("RANK", "0"), ("WORLD_SIZE", "1")]), Some(0));
        let own = [("RANK", "3"), ("WORLD_SIZE", "8"), ("CUDA_VISIBLE_DEVICES", "3")];
        assert_eq!(rank(&own), Some(3));
    }

    #[test]
    fn own_run_id_overrides_the_launcher_and_the_word_none_is_ignored() {
        assert_eq!(
            from_environ("SLURM_JOB_ID=7 PULSETRAIN_RUN_ID=ours")
                .run
                .as_deref(),
            Some("ours")
        );
        assert_eq!(
            from_environ("SLURM_JOB_ID=7 PULSETRAIN_RUN_ID=ours").slurm[0].as_deref(),
            Some("7")
        );
        assert_eq!(from_environ("TORCHELASTIC_RUN_ID=none RANKS=3").run, None);
        assert_eq!(from_environ("TORCHELASTIC_RUN_ID=none RANKS=3").rank, None);
    }
}
