//! The known workload of a process, of a GPU, or of an instance.

use std::sync::Arc;

use pulsetrain_record::launcher::SLURM;
use pulsetrain_semconv::{Attribute, attribute};

use super::visible::VisibleDevices;
use crate::{OwnedAttribute, OwnedValue};

/// The run, the job and the pod that a process or a GPU belongs to, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The run.
    pub run: Option<Arc<str>>,
    /// The rank in the job.
    pub rank: Option<i64>,
    /// The rank on its host.
    pub local_rank: Option<i64>,
    /// The number of ranks of the job.
    pub world_size: Option<i64>,
    /// The Slurm job, by the attributes of [`SLURM`].
    pub(super) slurm: [Option<Arc<str>>; SLURM.len()],
    /// The pod.
    pub(super) pod: Pod,
    /// When the process was created.
    pub(super) created: Option<Arc<str>>,
    /// The GPUs that are visible to the process.
    pub(super) visible: VisibleDevices,
    /// Whether the process numbers GPUs in the order of the bus, as NVML does.
    pub(super) counts_by_bus: bool,
    /// Whether the workload is that of processes with the same `visible`, so that `visible` is valid.
    pub(super) is_of_a_process: bool,
}

/// A pod of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: Option<Arc<str>>,
    pub(super) namespace: Option<Arc<str>>,
    pub(super) name: Option<Arc<str>>,
    pub(super) container: Option<Arc<str>>,
}

impl Workload {
    /// Returns the values on which all workloads agree, or `None` if there are no workloads.
    pub(super) fn agreed<'a>(mut all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let first = all.next()?.clone();
        Some(all.fold(first, |one, other| Self {
            run: agree(one.run, &other.run),
            rank: agree(one.rank, &other.rank),
            local_rank: agree(one.local_rank, &other.local_rank),
            world_size: agree(one.world_size, &other.world_size),
            slurm: std::array::from_fn(|place| agree(one.slurm[place].clone(), &other.slurm[place])),
            pod: one.pod.agreed(&other.pod),
            // Processes are not created together.
            created: None,
            is_of_a_process: one.is_of_a_process && one.visible == other.visible,
            counts_by_bus: one.counts_by_bus && other.counts_by_bus,
            visible: one.visible,
        }))
    }

    /// Adds the known values as attributes.
    pub(super) fn write(&self, into: &mut Vec<OwnedAttribute>) {
        let mut text = |attribute: &'static Attribute, value: &Option<Arc<str>>| {
            into.extend(value.clone().map(|value| (attribute, OwnedValue::Text(value))));
        };
        text(&attribute::TRAIN_RUN_ID, &self.run);
        for ((attribute, _), value) in SLURM.into_iter().zip(&self.slurm) {
            text(attribute, value);
        }
        text(&attribute::K8S_POD_UID, &self.pod.uid);
        text(&attribute::K8S_NAMESPACE_NAME, &self.pod.namespace);
        text(&attribute::K8S_POD_NAME, &self.pod.name);
        text(&attribute::K8S_CONTAINER_NAME, &self.pod.container);
        // A rank has a meaning only in a run.
        if self.run.is_some() {
            let mut number = |attribute: &'static Attribute, value: Option<i64>| {
                into.extend(value.map(|value| (attribute, OwnedValue::Int(value))));
            };
            number(&attribute::TRAIN_RANK, self.rank);
            number(&attribute::TRAIN_LOCAL_RANK, self.local_rank);
            number(&attribute::TRAIN_WORLD_SIZE, self.world_size);
        }
    }
}

impl Pod {
    fn agreed(self, other: &Self) -> Self {
        Self {
            uid: agree(self.uid, &other.uid),
            namespace: agree(self.namespace, &other.namespace),
            name: agree(self.name, &other.name),
            container: agree(self.container, &other.container),
        }
    }
}

fn agree<T: PartialEq>(one: Option<T>, other: &Option<T>) -> Option<T> {
    one.filter(|one| Some(one) == other.as_ref())
}
