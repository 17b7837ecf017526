//! Notices about workloads for the operator. Each kind is sent once.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// A notice for the operator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkloadNotice {
    /// The environment of a process on a GPU may not be read.
    NoPermission {
        /// The first such process.
        pid: u32,
    },
    /// The driver reports process ids of another PID namespace, or the processes on the GPUs belong to other users.
    OtherPidNamespace,
    /// The machine has GPUs of several models, and a process numbers them in CUDA's own order.
    UnknownOrder,
    /// The kubelet does not list the GPUs of pods.
    NoPods {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for WorkloadNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPermission { pid } => write!(
                f,
                "process {pid} on a GPU is another user's and its environment may not be read: the series of its GPU have no run \
                 and no rank; run as the same user, or with CAP_SYS_PTRACE"
            ),
            Self::OtherPidNamespace => f.write_str(
                "the processes on the GPUs are counted in another PID namespace than ours: series of GPUs have no run and no \
                 rank; share the host's namespace (hostPID: true, --pid=host)",
            ),
            Self::UnknownOrder => f.write_str(
                "GPUs of several models are counted in CUDA's own order, the fastest first, so their numbers are ambiguous; \
                 set CUDA_DEVICE_ORDER=PCI_BUS_ID for the trainer, or name GPUs by UUID",
            ),
            Self::NoPods { why } => write!(
                f,
                "the kubelet does not list the GPUs of pods: {why}; mount /var/lib/kubelet/pod-resources, readable for the agent"
            ),
        }
    }
}

/// Sends each kind of notice once; clones share their state.
#[derive(Clone)]
pub(super) struct Notices(Arc<SentNotices>);

struct SentNotices {
    kinds: Mutex<HashSet<std::mem::Discriminant<WorkloadNotice>>>,
    report: Box<dyn Fn(WorkloadNotice) + Send + Sync>,
}

impl Notices {
    pub(super) fn new(report: impl Fn(WorkloadNotice) + Send + Sync + 'static) -> Self {
        Self(Arc::new(SentNotices {
            kinds: Mutex::default(),
            report: Box::new(report),
        }))
    }

    pub(super) fn send_once(&self, notice: WorkloadNotice) {
        let mut kinds = self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.insert(std::mem::discriminant(&notice)) {
            (self.0.report)(notice);
        }
    }
}
