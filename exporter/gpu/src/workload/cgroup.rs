//! The Slurm job or the Kubernetes pod of a process, by the path of its control group.

use std::sync::Arc;

use super::facts::Workload;

impl Workload {
    /// Adds the job and the pod of `/proc/PID/cgroup` if they are not known yet.
    pub(super) fn add_cgroup(&mut self, cgroup: &str) {
        let [job, ..] = &mut self.slurm;
        if job.is_none() {
            *job = slurm_job(cgroup);
        }
        if self.pod.uid.is_none() {
            self.pod.uid = pod_uid(cgroup);
        }
    }
}

/// Returns the parts of the paths of all lines: `0::/system.slice/slurmstepd.scope/job_7/step_0`.
fn parts(cgroup: &str) -> impl Iterator<Item = &str> {
    cgroup
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .flat_map(|path| path.split('/'))
}

/// Returns the job, or `None` if the path is not one of Slurm (`slurm.conf`, cgroup/v1 and cgroup/v2). If several Slurm daemons
/// share a machine, the name of the node precedes that of the scope, or follows that of the group.
fn slurm_job(cgroup: &str) -> Option<Arc<str>> {
    let is_slurm = parts(cgroup).any(|part| part.starts_with("slurm") || part.ends_with("_slurmstepd.scope"));
    let job = parts(cgroup).find_map(|part| part.strip_prefix("job_"))?;
    let is_number = job.bytes().all(|byte| byte.is_ascii_digit()) && !job.is_empty();
    (is_slurm && is_number).then(|| job.into())
}

/// Returns the uid of the pod: `kubepods-burstable-pod<uid>.slice` with the underscores of systemd, or `pod<uid>` below
/// `kubepods`. A kubelet in a container prepends its own name, and containerd without systemd appends its container.
fn pod_uid(cgroup: &str) -> Option<Arc<str>> {
    if !parts(cgroup).any(|part| part.starts_with("kubepods") || part.starts_with("kubelet-kubepods")) {
        return None;
    }
    parts(cgroup).find_map(|part| {
        let uid = part.split(".slice").next().unwrap_or(part);
        let uid = &uid[uid.rfind("pod")? + 3..];
        let uid = uid.replace('_', "-");
        let is_uid = uid.len() == 36 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_uid.then(|| uid.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_job_id_is_found_in_cgroup_v1_and_v2_hierarchies() {
        let new = "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0\n";
        let old = "11:memory:/slurm/uid_1000/job_4242/step_0/task_0\n10:cpuset:/\n";
        let several = "0::/system.slice/gpu07_slurmstepd.scope/job_4242/step_batch/user/task_special\n";
        let several_of_old = "7:devices:/slurm_gpu07/uid_1000/job_4242/step_0\n";
        let adopted = "0::/system.slice/slurmstepd.scope/job_4242/step_extern/user/task_0\n";
        // A container that a job has started keeps the job's group above its own.
        let container =
            "0::/system.slice/slurmstepd.scope/job_4242/step_0/user/task_0/libpod-0a1b.scope/container\n";
        for cgroup in [new, old, several, several_of_old, adopted, container] {
            assert_eq!(slurm_job(cgroup).as_deref(), Some("4242"), "{cgroup}");
        }
        for other in [
            "0::/user.slice/job_7\n",
            "0::/user.slice/user-1000.slice/session-3.scope\n",
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r7.scope\n",
            "0::/system.slice/slurmstepd.scope/system\n",
            "0::/system.slice/docker-0a1b2c.scope\n",
            "0::/\n",
        ] {
            assert_eq!(slurm_job(other), None, "{other}");
            assert_eq!(pod_uid(other), None, "{other}");
        }
    }

    #[test]
    fn pod_uid_is_found_with_either_cgroup_driver() {
        let uid = "1f3a2b4c-0d1e-4f5a-8b6c-7d8e9f0a1b2c";
        for cgroup in [
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f3a2b4c_0d1e_4f5a_8b6c_7d8e9f0a1b2c.slice/cri-containerd-0123.scope",
            "11:memory:/kubepods/burstable/pod1f3a2b4c-0d1e-4f5a-8b6c-7d8e9f0a1b2c/0123",
            "0::/kubepods.slice/kubepods-pod1f3a2b4c_0d1e_4f5a_8b6c_7d8e9f0a1b2c.slice/crio-0123.scope/container",
            "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod1f3a2b4c_0d1e_4f5a_8b6c_7d8e9f0a1b2c.slice/cri-containerd-0123.scope",
            "4:devices:/system.slice/containerd.service/kubepods-burstable-pod1f3a2b4c_0d1e_4f5a_8b6c_7d8e9f0a1b2c.slice:cri-containerd:0123",
        ] {
            assert_eq!(pod_uid(cgroup).as_deref(), Some(uid), "{cgroup}");
        }
        assert_eq!(pod_uid("0::/system.slice/podman.service"), None);
    }
}
