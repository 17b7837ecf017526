//! A folder that looks like `/proc`, GPUs with processes on them, and their attribution.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use pulsetrain_gpu::{
    Gpu, GpuAttribution, GpuProcess, Inventory, MigInstance, OwnedValue, Subject,
    workload::{ProcessAttribution, WorkloadConfig, WorkloadNotice},
};
use pulsetrain_pipeline::clock;
use tempfile::TempDir;

/// The timeout of a wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Processes of a machine.
pub(crate) struct Machine(TempDir);

/// The series of some GPUs.
pub(crate) struct Attributed {
    pub(crate) workloads: ProcessAttribution,
    pub(crate) notices: Arc<Mutex<Vec<WorkloadNotice>>>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let machine = Self(TempDir::new().expect("a folder"));
        machine.is_in_namespace("pid:[4026531836]");
        machine
    }

    pub(crate) fn proc(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    /// Sets the PID namespace of this process.
    pub(crate) fn is_in_namespace(&self, name: &str) {
        let link = self.0.path().join("self/ns/pid");
        fs::create_dir_all(link.parent().expect("it is in a folder")).expect("a folder");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(name, &link).expect("a link");
    }

    /// Adds a process with these variables, separated by spaces.
    pub(crate) fn runs(&self, pid: u32, environ: &str) {
        self.runs_in(pid, environ, "0::/user.slice\n");
    }

    pub(crate) fn runs_in(&self, pid: u32, environ: &str, cgroup: &str) {
        let folder = self.0.path().join(pid.to_string());
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("environ"), environ.replace(' ', "\0")).expect("a file");
        fs::write(folder.join("cgroup"), cgroup).expect("a file");
    }

    /// Opens a file in a process.
    pub(crate) fn opens(&self, pid: u32, path: &str) {
        let folder = self.0.path().join(pid.to_string()).join("fd");
        fs::create_dir_all(&folder).expect("a folder");
        std::os::unix::fs::symlink(path, folder.join("7")).expect("a link");
    }

    /// Adds a process whose environment nobody may read, not even root.
    pub(crate) fn hides(&self, pid: u32) {
        self.hides_in(pid, "0::/user.slice\n");
    }

    /// Adds a process in this control group, which everybody may read, while nobody may read its environment.
    pub(crate) fn hides_in(&self, pid: u32, cgroup: &str) {
        let folder = self.0.path().join(pid.to_string());
        fs::create_dir_all(&folder).expect("a folder");
        // A kernel setting that can only be written.
        let forbidden = Path::new("/proc/sys/vm/compact_memory");
        std::os::unix::fs::symlink(forbidden, folder.join("environ")).expect("a link");
        fs::write(folder.join("cgroup"), cgroup).expect("a file");
    }

    pub(crate) fn ends(&self, pid: u32) {
        fs::remove_dir_all(self.0.path().join(pid.to_string())).expect("the process was there");
    }

    pub(crate) fn watched(&self) -> Attributed {
        Attributed::by(WorkloadConfig {
            proc: self.proc(),
            kubelet: None,
            ours: None,
        })
    }
}

impl Attributed {
    pub(crate) fn by(config: WorkloadConfig) -> Self {
        let notices = Arc::<Mutex<Vec<_>>>::default();
        let received = Arc::clone(&notices);
        let workloads = ProcessAttribution::start(config, move |notice| {
            received.lock().expect("nobody panics with it").push(notice);
        });
        Self { workloads, notices }
    }

    /// Observes GPUs until `is_so` returns true.
    pub(crate) fn until(&mut self, gpus: &[Gpu], is_so: impl Fn(&mut Self) -> bool) {
        let inventory = inventory(gpus);
        let end = clock::now() + TIMEOUT;
        self.workloads.observe(&inventory);
        loop {
            self.workloads.attributes_may_have_changed();
            if is_so(self) {
                return;
            }
            assert!(
                clock::now() < end,
                "nothing came of it; notices: {:?}",
                self.notices
            );
            std::thread::yield_now();
        }
    }

    /// Observes GPUs until the first is attributed.
    pub(crate) fn until_known(&mut self, gpus: &[Gpu]) {
        self.until(gpus, |known| !known.of_gpu(&gpus[0]).is_empty());
    }

    /// Returns the attributes of a GPU, as `name=value`.
    pub(crate) fn of_gpu(&mut self, gpu: &Gpu) -> Vec<String> {
        self.labels(Subject::Gpu(gpu))
    }

    /// Returns the attributes of a subject, as `name=value`.
    pub(crate) fn labels(&mut self, subject: Subject<'_>) -> Vec<String> {
        let mut attributes = Vec::new();
        self.workloads.attributes(subject, &mut attributes);
        attributes
            .into_iter()
            .map(|(attribute, value)| match value {
                OwnedValue::Text(text) => format!("{}={text}", attribute.name),
                OwnedValue::Int(number) => format!("{}={number}", attribute.name),
            })
            .collect()
    }

    pub(crate) fn notices(&self) -> Vec<WorkloadNotice> {
        self.notices.lock().expect("nobody panics with it").clone()
    }
}

pub(crate) fn inventory(gpus: &[Gpu]) -> Inventory {
    Inventory {
        gpus: gpus.to_vec(),
        ..Inventory::default()
    }
}

/// Returns a GPU with processes on it.
pub(crate) fn gpu(index: u32, pids: &[u32]) -> Gpu {
    Gpu {
        index,
        uuid: format!("GPU-{index}{index}{index}{index}"),
        minor_number: Some(index),
        processes: pids.iter().map(|pid| process(*pid, None)).collect(),
        ..Gpu::default()
    }
}

pub(crate) fn process(pid: u32, gpu_instance_id: Option<u32>) -> GpuProcess {
    GpuProcess {
        pid,
        memory_bytes: None,
        gpu_instance_id,
        compute_instance_id: gpu_instance_id.map(|_| 0),
    }
}

pub(crate) fn instance(id: u32) -> MigInstance {
    MigInstance {
        index: id,
        uuid: format!("MIG-{id}{id}{id}{id}"),
        gpu_instance_id: id,
        ..MigInstance::default()
    }
}
