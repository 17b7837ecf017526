//! Checks for variables of launchers and of CUDA that contradict each other or the available GPUs.

use std::collections::BTreeSet;

use pulsetrain_gpu::{
    Gpu,
    workload::{VisibleDevice, VisibleDevices},
};
use pulsetrain_record::launcher::{LOCAL_RANKS, RANKS, WORLD_SIZES};

use super::{
    environment::place,
    finding::{Findings, Level},
    variables::Variables,
};
use crate::run;

const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
const ORDER: &str = "CUDA_DEVICE_ORDER";
const BY_BUS: &str = "PCI_BUS_ID";
const CONTAINER: &str = "NVIDIA_VISIBLE_DEVICES";
/// The variable of torchrun. If torchrun runs under a cluster launcher, the launcher counts nodes, and torchrun counts
/// ranks.
const TORCHRUN: &str = "TORCHELASTIC_RUN_ID";

/// Checks the variables, on a machine with these GPUs.
pub(super) fn check(variables: Variables<'_>, gpus: &[Gpu], findings: &mut Findings) {
    let launched = Launched { variables };
    for names in [&RANKS, &LOCAL_RANKS, &WORLD_SIZES] {
        launched.check_numbers(names, findings);
    }
    launched.check_range(findings);
    launched.check_identity(findings);
    launched.check_visible(gpus.len(), findings);
    launched.check_order(gpus, findings);
    launched.check_container(findings);
}

struct Launched<'a> {
    variables: Variables<'a>,
}

impl Launched<'_> {
    fn number(&self, name: &str) -> Option<i64> {
        self.variables.get(name)?.trim().parse().ok()
    }

    /// Finds different values of the same number under several names.
    fn check_numbers(&self, names: &[&'static str], findings: &mut Findings) {
        let set: Vec<_> = names
            .iter()
            .filter_map(|name| Some((*name, self.variables.get(name)?)))
            .collect();
        for (name, value) in &set {
            if value.trim().parse::<i64>().is_err() {
                findings.wrong(
                    place(&[name]),
                    format!("{name}={value} is not a number"),
                    "let the launcher set it, or unset it",
                );
            }
        }
        let [(first, value), others @ ..] = set.as_slice() else {
            return;
        };
        if self.variables.get(TORCHRUN).is_some() {
            return;
        }
        for (other, differs) in others.iter().filter(|(_, other)| other.trim() != value.trim()) {
            findings.warn(
                place(&[first, other]),
                format!("{first}={value}, but {other}={differs}: {first} is used"),
                "start the trainer by one launcher, or unset what another has set",
            );
        }
    }

    /// Finds a rank that is not below the number of ranks.
    fn check_range(&self, findings: &mut Findings) {
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, self.number(name)?)));
        let size = first(&WORLD_SIZES);
        for rank in [first(&RANKS), first(&LOCAL_RANKS)] {
            let (Some((name, rank)), Some((size_name, size))) = (rank, size) else {
                continue;
            };
            if rank < 0 || rank >= size {
                findings.wrong(
                    place(&[name, size_name]),
                    format!("{name}={rank} is not a rank of {size_name}={size}"),
                    "count ranks from 0, and give all of them the same size",
                );
            }
        }
    }

    /// Finds ranks that do not share the id of their run, or the number of its attempt.
    fn check_identity(&self, findings: &mut Findings) {
        let has_rank = RANKS.iter().any(|name| self.variables.get(name).is_some());
        // A shell without a rank counts as the first rank of its size.
        let first = |name: &str| (name == RANKS[0] && !has_rank).then(|| "0".to_owned());
        for warning in run::identity_warnings(|name| self.variables.get(name).or_else(|| first(name))) {
            findings.add(Level::Warning, place(&[TORCHRUN]), warning, "set a run id");
        }
    }

    /// Finds GPUs that do not exist, or an empty list.
    fn check_visible(&self, gpus: usize, findings: &mut Findings) {
        let Some(value) = self.variables.even_empty(VISIBLE) else {
            return;
        };
        let VisibleDevices::Only(devices) = VisibleDevices::parse(Some(&value)) else {
            return;
        };
        let written = value.split(',').filter(|entry| !entry.trim().is_empty()).count();
        if devices.is_empty() {
            return findings.warn(
                place(&[VISIBLE]),
                format!("{VISIBLE}={value} hides every GPU"),
                format!("unset {VISIBLE}, unless you train on the CPU"),
            );
        }
        if devices.len() < written {
            findings.warn(
                place(&[VISIBLE]),
                format!("{VISIBLE}={value}: entries after the first one that names no GPU are ignored"),
                "write numbers, or UUIDs that begin with GPU- or MIG-",
            );
        }
        let beyond = devices.iter().find_map(|device| match device {
            VisibleDevice::Index(index) if *index as usize >= gpus && gpus > 0 => Some(index),
            _ => None,
        });
        if let Some(index) = beyond {
            findings.wrong(
                place(&[VISIBLE]),
                format!("{VISIBLE}={value}, but the machine has {gpus} GPUs: there is no {index}"),
                "count GPUs from 0; inside a container, only its own GPUs count",
            );
        }
    }

    /// Finds device numbers on a machine with several GPU models, which CUDA orders in its own way.
    fn check_order(&self, gpus: &[Gpu], findings: &mut Findings) {
        let models: BTreeSet<&str> = gpus
            .iter()
            .map(|gpu| gpu.name.as_str())
            .filter(|model| !model.is_empty())
            .collect();
        let order = self.variables.get(ORDER);
        let visible = self.variables.even_empty(VISIBLE);
        let by_bus = order.as_deref().map(str::trim) == Some(BY_BUS);
        if models.len() < 2 || by_bus || !VisibleDevices::parse(visible.as_deref()).counts() {
            return;
        }
        findings.warn(
            place(&[ORDER]),
            format!(
                "GPUs of {} models, counted by CUDA with the fastest first: cuda:0 may not be GPU 0 of nvidia-smi, and series \
                 have no device.id",
                models.len()
            ),
            format!("set {ORDER}={BY_BUS} for the trainer, or name GPUs by UUID in {VISIBLE}"),
        );
    }

    /// Compares the GPUs of the container with those that CUDA may use.
    fn check_container(&self, findings: &mut Findings) {
        let (Some(visible), Some(container)) = (self.variables.get(VISIBLE), self.variables.get(CONTAINER))
        else {
            return;
        };
        let gives_none = ["void", "none"].contains(&container.trim());
        if gives_none {
            return findings.wrong(
                place(&[VISIBLE, CONTAINER]),
                format!("{VISIBLE}={visible}, but {CONTAINER}={container} gives the container no GPU"),
                format!(
                    "give it some ({CONTAINER}=all, --gpus, a request of nvidia.com/gpu), or unset {VISIBLE}"
                ),
            );
        }
        let given: Vec<_> = container.split(',').map(str::trim).collect();
        let is_given = |entry: &str| {
            given
                .iter()
                .any(|given| given.starts_with(entry) || *given == "all")
        };
        let names_uuids = given
            .iter()
            .all(|given| given.starts_with("GPU-") || given.starts_with("MIG-"));
        let stranger = visible
            .split(',')
            .map(str::trim)
            .find(|entry| entry.contains("GPU-") && names_uuids && !is_given(entry));
        if let Some(stranger) = stranger {
            findings.wrong(
                place(&[VISIBLE, CONTAINER]),
                format!("{VISIBLE} names {stranger}, which {CONTAINER} does not give the container"),
                format!("unset {VISIBLE} inside the container: it has only its own GPUs anyway"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<String> {
        found_with(variables, &["NVIDIA H100 80GB HBM3"; 8])
    }

    fn found_with(variables: &[(&str, &str)], models: &[&str]) -> Vec<String> {
        let gpu = |model: &&str| Gpu {
            name: (*model).to_owned(),
            ..Gpu::default()
        };
        let gpus: Vec<Gpu> = models.iter().map(gpu).collect();
        let mut findings = Findings::default();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        check(Variables(&variable), &gpus, &mut findings);
        let all = findings.all().iter();
        all.map(|finding| format!("{} {}", finding.level, finding.what))
            .collect()
    }

    #[test]
    fn rank_variables_of_two_launchers_must_agree_except_for_torchrun() {
        let both = [("RANK", "3"), ("SLURM_PROCID", "4"), ("WORLD_SIZE", "8")];
        assert_eq!(found(&both), ["warning RANK=3, but SLURM_PROCID=4: RANK is used"]);
        let torchrun = [("RANK", "3"), ("SLURM_PROCID", "0"), ("TORCHELASTIC_RUN_ID", "j")];
        assert_eq!(found(&torchrun), [""; 0]);
    }

    #[test]
    fn ranks_without_a_common_run_id_are_reported_as_by_run() {
        let none = [("TORCHELASTIC_RUN_ID", "none"), ("WORLD_SIZE", "4")];
        let warned = found(&none);
        assert!(
            warned.len() == 1 && warned[0].starts_with("warning no id names the run of all 4 ranks"),
            "{warned:?}"
        );
        assert_eq!(found(&[none[0], none[1], ("PULSETRAIN_RUN_ID", "j")]), [""; 0]);
    }

    #[test]
    fn a_rank_is_a_number_below_the_number_of_ranks() {
        assert_eq!(found(&[("RANK", "7"), ("WORLD_SIZE", "8")]), [""; 0]);
        assert_eq!(
            found(&[("RANK", "8"), ("WORLD_SIZE", "8")]),
            ["wrong RANK=8 is not a rank of WORLD_SIZE=8"]
        );
        assert_eq!(found(&[("RANK", "first")]), ["wrong RANK=first is not a number"]);
    }

    #[test]
    fn missing_visible_gpus_are_reported() {
        assert_eq!(found(&[("CUDA_VISIBLE_DEVICES", "0,7")]), [""; 0]);
        assert!(found(&[("CUDA_VISIBLE_DEVICES", "0,8")])[0].contains("there is no 8"));
        assert!(found(&[("CUDA_VISIBLE_DEVICES", "")])[0].starts_with("warning"));
        assert!(found(&[("CUDA_VISIBLE_DEVICES", "0,x,1")])[0].contains("are ignored"));
    }

    #[test]
    fn mixed_gpu_models_are_numbered_reliably_only_in_pci_bus_order() {
        let mixed = ["NVIDIA T400", "NVIDIA A100"];
        let numbers = ("CUDA_VISIBLE_DEVICES", "1");
        for variables in [&[][..], &[numbers], &[("CUDA_DEVICE_ORDER", "FASTEST_FIRST")]] {
            let all = found_with(variables, &mixed);
            assert!(
                all.len() == 1 && all[0].starts_with("warning GPUs of 2 models"),
                "{all:?}"
            );
        }
        let by_bus = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        assert_eq!(found_with(&[numbers, by_bus], &mixed), [""; 0]);
        assert_eq!(found_with(&[("CUDA_VISIBLE_DEVICES", "GPU-1")], &mixed), [""; 0]);
        assert_eq!(found(&[numbers]), [""; 0]);
    }

    #[test]
    fn gpus_outside_the_container_cannot_be_used() {
        let none = [("CUDA_VISIBLE_DEVICES", "0"), ("NVIDIA_VISIBLE_DEVICES", "void")];
        assert!(found(&none)[0].starts_with("wrong"));
        let given = ("NVIDIA_VISIBLE_DEVICES", "GPU-aaaa-1,GPU-bbbb-2");
        assert_eq!(found(&[given, ("CUDA_VISIBLE_DEVICES", "GPU-bbbb")]), [""; 0]);
        assert!(found(&[given, ("CUDA_VISIBLE_DEVICES", "GPU-cccc")])[0].contains("GPU-cccc"));
    }
}
