//! The attribution of GPUs: the run, the rank, the job and the pod of the processes on them.
//!
//! `environment` reads the launcher's variables of a process, `cgroup` its job or pod, `visible` the GPUs that are visible to it.
//! `reader` reads every process once, on its own thread. `pods` queries the kubelet. [`ProcessAttribution`] combines them for the
//! series of a GPU: it keeps only the values on which all processes on the GPU agree.

mod cgroup;
mod creation_time;
mod environment;
mod facts;
mod kubelet;
mod notice;
mod pods;
mod reader;
mod visible;

use std::path::PathBuf;

use pulsetrain_semconv::attribute;

pub use self::{
    facts::Workload,
    notice::WorkloadNotice,
    visible::{VisibleDevice, VisibleDevices},
};
use self::{
    notice::Notices,
    pods::{Pods, Watcher},
    reader::{Processes, Reader},
    visible::Numbers,
};
use crate::{
    Gpu, GpuAttribution, GpuProcess, Inventory, MigInstance, OwnedAttribute, OwnedValue, Subject, Vendor,
};

/// The sources of the attribution: processes, the kubelet, and the run that this program has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadConfig {
    /// The mount point of the proc file system.
    pub proc: PathBuf,
    /// The socket at which the kubelet lists the devices of each pod; `None` turns it off.
    pub kubelet: Option<PathBuf>,
    /// The run that this program has started, with its environment. The GPUs are attributed to it if no process on them is
    /// visible here, as in a container.
    pub ours: Option<Workload>,
}

impl Default for WorkloadConfig {
    fn default() -> Self {
        Self {
            proc: "/proc".into(),
            kubelet: Some(pods::SOCKET.into()),
            ours: None,
        }
    }
}

/// Attributes GPUs to the processes on them and to pods.
pub struct ProcessAttribution {
    reader: Reader,
    processes: Processes,
    /// The processes on all GPUs.
    pids: Vec<u32>,
    pods: Pods,
    /// The version of the kubelet's answer at the last check.
    pods_known: u64,
    /// Queries the kubelet until it is dropped.
    _watcher: Option<Watcher>,
    ours: Option<Workload>,
    /// Whether processes on the GPUs may belong to another run than the one that this program has started.
    sees_others: bool,
    /// Whether the GPUs are of more than one model.
    is_mixed: bool,
    notices: Notices,
}

impl ProcessAttribution {
    /// Starts to read processes and to query the kubelet. `on_notice` receives each kind of notice for the operator once.
    ///
    /// # Panics
    /// If it is called outside a tokio runtime and the socket of the kubelet exists.
    pub fn start(config: WorkloadConfig, on_notice: impl Fn(WorkloadNotice) + Send + Sync + 'static) -> Self {
        let notices = Notices::new(on_notice);
        let pods = Pods::default();
        // Without the socket, this machine is not a Kubernetes node.
        let socket = config.kubelet.filter(|socket| socket.exists());
        Self {
            reader: Reader::start(config.proc, notices.clone()),
            notices: notices.clone(),
            is_mixed: false,
            processes: Processes::default(),
            pids: Vec::new(),
            _watcher: socket.map(|socket| Watcher::start(socket, pods.clone(), notices)),
            pods,
            pods_known: 0,
            ours: config.ours,
            sees_others: false,
        }
    }

    fn of_processes<'a>(&self, processes: impl Iterator<Item = &'a GpuProcess>) -> Option<Workload> {
        let pids: Vec<u32> = processes.map(|process| process.pid).collect();
        let read = pids.iter().filter_map(|pid| self.processes.workload(*pid));
        let hidden = || pids.iter().filter_map(|pid| self.processes.hidden(*pid));
        Workload::agreed(read).or_else(|| Workload::agreed(hidden()))
    }

    fn of_gpu(&self, gpu: &Gpu) -> Workload {
        let processes = self.of_processes(gpu.processes.iter());
        let pod = || self.pods.of_gpu(gpu);
        self.with_pod(processes.or_else(|| self.launched_run_on(gpu, None)), pod)
    }

    fn of_instance(&self, gpu: &Gpu, instance: &MigInstance) -> Workload {
        let is_on_it = |process: &&GpuProcess| {
            process.gpu_instance_id == Some(instance.gpu_instance_id)
                && process
                    .compute_instance_id
                    .is_none_or(|id| id == instance.compute_instance_id)
        };
        let processes = self.of_processes(gpu.processes.iter().filter(is_on_it));
        let pod = || self.pods.of_instance(gpu, instance);
        self.with_pod(
            processes.or_else(|| self.launched_run_on(gpu, Some(instance))),
            pod,
        )
    }

    /// Returns the run that this program has started, if no other is seen on any GPU and this GPU is visible to it.
    fn launched_run_on(&self, gpu: &Gpu, instance: Option<&MigInstance>) -> Option<Workload> {
        let ours = self.ours.as_ref().filter(|_| !self.sees_others)?;
        let is_given = ours.visible.has(gpu, instance, self.numbers(ours));
        is_given.then(|| ours.clone())
    }

    /// Returns the order in which CUDA numbers the GPUs in a process.
    fn numbers(&self, workload: &Workload) -> Numbers {
        if !self.is_mixed || workload.counts_by_bus {
            return Numbers::AsNvml;
        }
        if workload.visible.counts() {
            self.notices.send_once(WorkloadNotice::UnknownOrder);
        }
        Numbers::Unknown
    }

    fn with_pod(&self, workload: Option<Workload>, pod: impl FnOnce() -> Option<Workload>) -> Workload {
        let mut workload = workload.unwrap_or_default();
        if let Some(pod) = pod() {
            workload.pod = pod.pod;
        }
        workload
    }
}

impl GpuAttribution for ProcessAttribution {
    fn observe(&mut self, inventory: &Inventory) {
        let processes = inventory.gpus.iter().flat_map(|gpu| &gpu.processes);
        self.pids = processes.map(|process| process.pid).collect();
        self.processes.forget_all_but(&self.pids);
        self.is_mixed = are_mixed(&inventory.gpus);
        self.pods.devices_are(inventory);
    }

    fn attributes_may_have_changed(&mut self) -> bool {
        self.reader.ask(&mut self.processes, &self.pids);
        let read = self.reader.fetch(&mut self.processes);
        let saw_others = std::mem::replace(
            &mut self.sees_others,
            self.processes.may_have_other_runs(&self.pids),
        );
        let pods = std::mem::replace(&mut self.pods_known, self.pods.change_count());
        read || saw_others != self.sees_others || pods != self.pods_known
    }

    fn attributes(&mut self, subject: Subject<'_>, into: &mut Vec<OwnedAttribute>) {
        let (gpu, instance, workload) = match subject {
            Subject::Gpu(gpu) => (gpu, None, self.of_gpu(gpu)),
            Subject::Instance(gpu, instance) => (gpu, Some(instance), self.of_instance(gpu, instance)),
            Subject::Process(gpu, process) => {
                let known = self.processes.workload(process.pid);
                let workload = known.or_else(|| self.processes.hidden(process.pid));
                let created = workload.and_then(|workload| workload.created.clone());
                into.extend(created.map(|time| (&attribute::PROCESS_CREATION_TIME, OwnedValue::Text(time))));
                (gpu, None, workload.cloned().unwrap_or_default())
            }
        };
        workload.write(into);
        if workload.is_of_a_process {
            let numbers = self.numbers(&workload);
            let place = workload.visible.place(gpu, instance, numbers);
            into.extend(place.map(|place| (&attribute::DEVICE_ID, format!("cuda:{place}").as_str().into())));
        }
    }
}

/// Returns whether the GPUs of a vendor are of more than one model. An unknown model, as of a GPU that does not answer, is
/// ignored.
fn are_mixed(gpus: &[Gpu]) -> bool {
    let has_several = |vendor| {
        let of_vendor = gpus.iter().filter(|gpu| gpu.vendor == vendor);
        let mut models = of_vendor
            .map(|gpu| gpu.name.as_str())
            .filter(|model| !model.is_empty());
        models
            .next()
            .is_some_and(|first| models.any(|model| model != first))
    };
    has_several(Vendor::Nvidia) || has_several(Vendor::Amd)
}
