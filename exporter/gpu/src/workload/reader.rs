//! Reads each process on a GPU once, on a separate thread: reading the environment of a process that hangs in the kernel can
//! block.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use super::{
    creation_time::creation_time,
    environment::MAX_BYTES,
    facts::Workload,
    notice::{Notices, WorkloadNotice},
};

/// The capacity of the request queue. Requests beyond it are repeated at the next tick.
const QUEUE: usize = 256;

/// The first PID namespace of a machine (`PROC_PID_INIT_INO` of Linux), whose process ids every driver reports. The open kernel
/// modules since driver 535.113 (`_gpuConvertPid`) translate them into the namespace of the caller.
const HOST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// The device that every CUDA process has open. A program that only uses NVML does not open it.
const CUDA_DEVICE: &str = "/dev/nvidia-uvm";

/// The processes on the GPUs, as far as they have been read.
#[derive(Debug, Default)]
pub(super) struct Processes(HashMap<u32, Seen>);

/// The state of a process.
#[derive(Debug)]
enum Seen {
    /// It is being read.
    NotYet,
    /// Its environment may not be read, because it belongs to another user: only its job and pod are known.
    Hidden(Box<Workload>),
    /// No process has this id here: it is in another namespace, or has ended.
    Elsewhere,
    /// It was read.
    Read(Box<Workload>),
}

/// The handle of the thread that reads.
pub(super) struct Reader {
    ask: Option<SyncSender<Vec<u32>>>,
    answers: Answers,
}

/// The processes that were read and not fetched yet.
type Answers = Arc<Mutex<Vec<(u32, Seen)>>>;

impl Processes {
    /// Returns the workload of a process, or `None` if it was not read.
    pub(super) fn workload(&self, pid: u32) -> Option<&Workload> {
        match self.0.get(&pid)? {
            Seen::Read(workload) => Some(workload),
            _ => None,
        }
    }

    /// Returns the job and the pod of a process whose environment may not be read.
    pub(super) fn hidden(&self, pid: u32) -> Option<&Workload> {
        match self.0.get(&pid)? {
            Seen::Hidden(workload) => Some(workload),
            _ => None,
        }
    }

    /// Removes all processes except `pids`.
    pub(super) fn forget_all_but(&mut self, pids: &[u32]) {
        self.0.retain(|pid, _| pids.contains(pid));
    }

    /// Returns whether any of these processes is in this namespace or not read yet, so that it may belong to another run.
    pub(super) fn may_have_other_runs(&self, pids: &[u32]) -> bool {
        pids.iter()
            .any(|pid| !matches!(self.0.get(pid), Some(Seen::Elsewhere)))
    }
}

impl Reader {
    /// Starts the thread. If that fails, all processes stay unknown.
    pub(super) fn start(proc: PathBuf, notices: Notices) -> Self {
        let (ask, asked) = sync_channel(QUEUE);
        let answers = Answers::default();
        let given = Arc::clone(&answers);
        let thread = thread::Builder::new()
            .name("workload".to_owned())
            .spawn(move || read_all(&proc, &asked, &given, &notices));
        Self {
            ask: thread.ok().map(|_| ask),
            answers,
        }
    }

    /// Requests the processes of `pids` that are new. The processes of a request become known together, so that a GPU is not
    /// attributed to its first process while the others are still being read.
    pub(super) fn ask(&self, processes: &mut Processes, pids: &[u32]) {
        let is_new = |pid: &u32| !processes.0.contains_key(pid);
        // A process on several GPUs is read once.
        let new: BTreeSet<u32> = pids.iter().copied().filter(is_new).collect();
        let new = Vec::from_iter(new);
        if !new.is_empty()
            && let Some(ask) = &self.ask
            && ask.try_send(new.clone()).is_ok()
        {
            processes.0.extend(new.into_iter().map(|pid| (pid, Seen::NotYet)));
        }
    }

    /// Fetches the processes that were read since the last call. Returns whether there were any.
    pub(super) fn fetch(&self, processes: &mut Processes) -> bool {
        let answers = std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner));
        let any = !answers.is_empty();
        for (pid, seen) in answers {
            if let Some(known) = processes.0.get_mut(&pid) {
                *known = seen;
            }
        }
        any
    }
}

fn read_all(proc: &Path, asked: &Receiver<Vec<u32>>, answers: &Answers, notices: &Notices) {
    while let Ok(pids) = asked.recv() {
        let seen: Vec<_> = pids
            .into_iter()
            .map(|pid| (pid, see(proc, pid, notices)))
            .collect();
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.extend(seen);
    }
}

fn see(proc: &Path, pid: u32, notices: &Notices) -> Seen {
    let folder = proc.join(pid.to_string());
    // In another namespace, the id may be that of an unrelated process; a process on a GPU uses CUDA.
    if !is_host_namespace(proc) && !uses_cuda(&folder) {
        notices.send_once(WorkloadNotice::OtherPidNamespace);
        return Seen::Elsewhere;
    }
    match environ(&folder) {
        Ok(environ) => {
            let mut workload = Workload::of_environ(&environ);
            workload.is_of_a_process = true;
            Seen::Read(Box::new(with_public_files(workload, proc, &folder)))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            notices.send_once(WorkloadNotice::NoPermission { pid });
            Seen::Hidden(Box::new(with_public_files(Workload::default(), proc, &folder)))
        }
        Err(_) => Seen::Elsewhere,
    }
}

/// Returns whether a process is known to use CUDA. The files of a process of another user cannot be listed.
fn uses_cuda(folder: &Path) -> bool {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
    targets.any(|target| target == Path::new(CUDA_DEVICE))
}

/// Returns whether this process is in the namespace whose process ids the driver reports.
fn is_host_namespace(proc: &Path) -> bool {
    match fs::read_link(proc.join("self/ns/pid")) {
        Ok(namespace) => namespace.as_os_str() == HOST_PID_NAMESPACE,
        // An unknown namespace is treated as that of the host.
        Err(_) => true,
    }
}

/// Reads the environment of a process.
fn environ(folder: &Path) -> io::Result<Vec<u8>> {
    let mut environ = Vec::new();
    File::open(folder.join("environ"))?
        .take(MAX_BYTES)
        .read_to_end(&mut environ)?;
    Ok(environ)
}

/// Returns the workload with the job, the pod and the creation time of its process, which everybody may read even if the
/// environment is hidden.
fn with_public_files(mut workload: Workload, proc: &Path, folder: &Path) -> Workload {
    workload.created = creation_time(proc, folder).map(|time| time.as_str().into());
    workload.add_cgroup(&fs::read_to_string(folder.join("cgroup")).unwrap_or_default());
    workload
}
