//! The pods of GPUs, from the kubelet. It is queried when the GPUs or their processes change, and periodically.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, task::JoinHandle};

use super::{
    facts::{Pod, Workload},
    kubelet::{self, PodDevice},
    notice::{Notices, WorkloadNotice},
};
use crate::{Gpu, Inventory, MigInstance};

/// The socket on which the kubelet listens.
pub(super) const SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The interval of queries: pods start and end without a change of the GPUs.
const INTERVAL: Duration = Duration::from_secs(15);
/// The minimum delay between two queries when GPUs or processes change.
const PAUSE: Duration = Duration::from_secs(1);
/// The timeout of a query.
const DEADLINE: Duration = Duration::from_secs(5);

/// The last answer of the kubelet; a clone shares it.
#[derive(Clone, Debug, Default)]
pub(super) struct Pods(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    known: Mutex<PodDevices>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct PodDevices {
    /// The workload of each device, with the values on which its pods agree.
    devices: HashMap<String, Workload>,
    /// The number of changes of `devices`.
    change_count: u64,
    /// The GPUs, instances and processes in the last inventory.
    seen: Vec<String>,
}

/// The task that queries the kubelet; it is aborted on drop.
pub(super) struct Watcher(JoinHandle<()>);

impl Pods {
    /// Returns the pod of a GPU.
    pub(super) fn of_gpu(&self, gpu: &Gpu) -> Option<Workload> {
        let number = gpu.minor_number.unwrap_or(gpu.index);
        self.find(&[gpu.uuid.clone(), format!("nvidia{number}")])
    }

    /// Returns the pod of an instance.
    pub(super) fn of_instance(&self, gpu: &Gpu, instance: &MigInstance) -> Option<Workload> {
        let number = gpu.minor_number.unwrap_or(gpu.index);
        let place = format!("nvidia{number}/gi{}", instance.gpu_instance_id);
        self.find(&[instance.uuid.clone(), place])
    }

    /// Updates the GPUs, instances and processes. If they have changed, pods may have too, and the kubelet is queried.
    pub(super) fn devices_are(&self, inventory: &Inventory) {
        let seen: Vec<String> = inventory
            .gpus
            .iter()
            .flat_map(|gpu| {
                let instances = gpu.instances.iter().map(|instance| instance.uuid.clone());
                let processes = gpu.processes.iter().map(|process| process.pid.to_string());
                instances.chain(processes).chain([gpu.uuid.clone()])
            })
            .collect();
        let mut known = self.known();
        if known.seen != seen {
            known.seen = seen;
            self.0.changed.notify_one();
        }
    }

    /// Returns the number of changes of the answer.
    pub(super) fn change_count(&self) -> u64 {
        self.known().change_count
    }

    fn find(&self, names: &[String]) -> Option<Workload> {
        let known = self.known();
        names.iter().find_map(|name| known.devices.get(name)).cloned()
    }

    fn update_devices(&self, devices: Vec<PodDevice>) {
        let mut all: HashMap<String, Vec<Workload>> = HashMap::new();
        for PodDevice { device, pod } in devices {
            // A time-sliced GPU has a replica for each of its pods: `GPU-...::3`.
            let device = device.split("::").next().unwrap_or_default().to_owned();
            let workload = Workload {
                pod,
                ..Workload::default()
            };
            all.entry(device).or_default().push(workload);
        }
        let agreed = all
            .into_iter()
            .filter_map(|(device, workloads)| Some((device, Workload::agreed(workloads.iter())?)));
        let devices: HashMap<_, _> = agreed
            .filter(|(_, workload)| workload.pod != Pod::default())
            .collect();
        let mut known = self.known();
        if known.devices != devices {
            known.devices = devices;
            known.change_count += 1;
        }
    }

    fn known(&self) -> MutexGuard<'_, PodDevices> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    /// Starts to query the kubelet at `socket`.
    pub(super) fn start(socket: PathBuf, pods: Pods, notices: Notices) -> Self {
        Self(tokio::spawn(async move {
            loop {
                match tokio::time::timeout(DEADLINE, kubelet::list(&socket)).await {
                    Ok(Ok(devices)) => pods.update_devices(devices),
                    Ok(Err(why)) => notices.send_once(WorkloadNotice::NoPods { why }),
                    Err(_) => notices.send_once(WorkloadNotice::NoPods {
                        why: "it did not answer in time".to_owned(),
                    }),
                }
                tokio::time::sleep(PAUSE).await;
                // Waits for the interval, or for a change.
                let _ = tokio::time::timeout(INTERVAL, pods.0.changed.notified()).await;
            }
        }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}
