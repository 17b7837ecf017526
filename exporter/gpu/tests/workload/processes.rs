//! Runs and ranks, from the environment of the processes on the GPUs.

use pulsetrain_gpu::{
    Gpu, GpuAttribution, Subject,
    workload::{Workload, WorkloadConfig, WorkloadNotice},
};

use crate::world::{Attributed, Machine, gpu, instance, process};

#[test]
fn gpu_is_attributed_to_the_run_rank_and_cuda_device_of_its_process() {
    let machine = Machine::new();
    machine.runs(
        41,
        "PULSETRAIN_RUN_ID=r RANK=9 LOCAL_RANK=1 WORLD_SIZE=16 CUDA_VISIBLE_DEVICES=GPU-0000,GPU-1111",
    );
    let gpus = [gpu(1, &[41])];
    let mut known = machine.watched();
    known.until_known(&gpus);
    assert_eq!(
        known.of_gpu(&gpus[0]),
        [
            "train.run.id=r",
            "train.rank=9",
            "train.local_rank=1",
            "train.world_size=16",
            "device.id=cuda:1"
        ]
    );
    assert_eq!(
        known.labels(Subject::Process(&gpus[0], &gpus[0].processes[0])),
        known.of_gpu(&gpus[0])
    );
}

#[test]
fn attributes_that_differ_between_processes_are_not_set_on_the_gpu() {
    let machine = Machine::new();
    machine.runs(1, "PULSETRAIN_RUN_ID=r RANK=0 SLURM_JOB_ID=7");
    machine.runs(2, "PULSETRAIN_RUN_ID=r RANK=1 SLURM_JOB_ID=7");
    machine.runs(3, "PULSETRAIN_RUN_ID=other RANK=0 SLURM_JOB_ID=8");
    let gpus = [gpu(0, &[1, 2]), gpu(1, &[1, 3])];
    let mut known = machine.watched();
    known.until(&gpus, |known| {
        [0, 1].iter().all(|place| {
            let processes = &gpus[*place].processes;
            processes
                .iter()
                .all(|process| !known.labels(Subject::Process(&gpus[*place], process)).is_empty())
        })
    });
    let of_run = known.of_gpu(&gpus[0]);
    assert_eq!(of_run, ["train.run.id=r", "slurm.job.id=7", "device.id=cuda:0"]);
    assert_eq!(known.of_gpu(&gpus[1]), ["device.id=cuda:1"]);
    let second = known.labels(Subject::Process(&gpus[0], &gpus[0].processes[1]));
    assert!(second.contains(&"train.rank=1".to_owned()), "{second:?}");
}

#[test]
fn gpu_has_no_run_id_until_all_its_processes_are_read() {
    let machine = Machine::new();
    let pids: Vec<u32> = (1..=200).collect();
    for pid in &pids {
        let run = if *pid == 200 { "other" } else { "r" };
        machine.runs(*pid, &format!("PULSETRAIN_RUN_ID={run} SLURM_JOB_ID=7"));
    }
    let gpus = [gpu(0, &pids)];
    let mut known = machine.watched();
    known.until(&gpus, |known| {
        let of_gpu = known.of_gpu(&gpus[0]);
        assert!(!of_gpu.contains(&"train.run.id=r".to_owned()), "{of_gpu:?}");
        of_gpu.contains(&"slurm.job.id=7".to_owned())
    });
}

#[test]
fn process_is_read_once_and_reread_when_its_pid_is_reused() {
    let machine = Machine::new();
    machine.runs(5, "PULSETRAIN_RUN_ID=first RANK=0");
    let busy = [gpu(0, &[5])];
    let mut known = machine.watched();
    known.until_known(&busy);
    machine.runs(5, "PULSETRAIN_RUN_ID=second RANK=0");
    known.until_known(&busy);
    assert_eq!(
        known.of_gpu(&busy[0])[0],
        "train.run.id=first",
        "it is not read again"
    );
    let idle = [gpu(0, &[])];
    known.until(&idle, |known| known.of_gpu(&idle[0]).is_empty());
    known.until(&busy, |known| {
        known.of_gpu(&busy[0]).first().map(String::as_str) == Some("train.run.id=second")
    });
}

#[test]
fn mig_instance_is_attributed_to_the_run_of_its_processes() {
    let machine = Machine::new();
    machine.runs(1, "PULSETRAIN_RUN_ID=one CUDA_VISIBLE_DEVICES=MIG-1111");
    machine.runs(2, "PULSETRAIN_RUN_ID=two CUDA_VISIBLE_DEVICES=MIG-2222");
    let gpus = [Gpu {
        instances: vec![instance(1), instance(2)],
        processes: vec![process(1, Some(1)), process(2, Some(2))],
        ..gpu(0, &[])
    }];
    let mut known = machine.watched();
    known.until(&gpus, |known| {
        let of = |known: &mut Attributed, place: usize| {
            known.labels(Subject::Instance(&gpus[0], &gpus[0].instances[place]))
        };
        of(known, 0) == ["train.run.id=one", "device.id=cuda:0"]
            && of(known, 1) == ["train.run.id=two", "device.id=cuda:0"]
    });
    assert_eq!(known.of_gpu(&gpus[0]), [""; 0], "the GPU is of two runs");
}

#[test]
fn slurm_jobs_and_pods_are_detected_from_the_cgroup() {
    let machine = Machine::new();
    machine.runs_in(1, "A=b", "0::/system.slice/slurmstepd.scope/job_77/step_0\n");
    let pod = "11:memory:/kubepods/besteffort/pod1f3a2b4c-0d1e-4f5a-8b6c-7d8e9f0a1b2c/0123\n";
    machine.runs_in(2, "A=b", pod);
    let gpus = [gpu(0, &[1]), gpu(1, &[2])];
    let mut known = machine.watched();
    known.until(&gpus, |known| {
        known.of_gpu(&gpus[0]).first().map(String::as_str) == Some("slurm.job.id=77")
            && known.of_gpu(&gpus[1]).first().map(String::as_str)
                == Some("k8s.pod.uid=1f3a2b4c-0d1e-4f5a-8b6c-7d8e9f0a1b2c")
    });
}

#[test]
fn unreadable_process_is_reported_once_and_others_are_read() {
    let machine = Machine::new();
    machine.hides(1);
    machine.hides(2);
    machine.runs(3, "PULSETRAIN_RUN_ID=r");
    let gpus = [gpu(0, &[3]), gpu(1, &[1, 2])];
    let mut known = machine.watched();
    known.until_known(&gpus);
    known.until(&gpus, |known| !known.notices().is_empty());
    assert_eq!(known.notices(), [WorkloadNotice::NoPermission { pid: 1 }]);
    assert_eq!(known.of_gpu(&gpus[1]), [""; 0]);
}

#[test]
fn unreadable_process_contributes_only_its_cgroup_job() {
    let machine = Machine::new();
    let job = "0::/system.slice/gpu07_slurmstepd.scope/job_4242/step_0/user/task_0\n";
    machine.hides_in(1, job);
    machine.hides_in(2, job);
    machine.runs_in(3, "PULSETRAIN_RUN_ID=r RANK=0", job);
    let gpus = [gpu(0, &[1]), gpu(1, &[2, 3])];
    let mut known = machine.watched();
    known.until(&gpus, |known| !known.of_gpu(&gpus[0]).is_empty());
    assert_eq!(known.of_gpu(&gpus[0]), ["slurm.job.id=4242"]);
    let of_the_one_that_was_read = [
        "train.run.id=r",
        "slurm.job.id=4242",
        "train.rank=0",
        "device.id=cuda:1",
    ];
    known.until(&gpus, |known| known.of_gpu(&gpus[1]) == of_the_one_that_was_read);
    assert!(
        !known.workloads.attributes_may_have_changed(),
        "all of it was news once"
    );
}

#[test]
fn pids_of_another_pid_namespace_match_no_local_process() {
    let machine = Machine::new();
    machine.is_in_namespace("pid:[4026532999]");
    machine.runs(1, "PULSETRAIN_RUN_ID=somebody");
    let gpus = [gpu(0, &[1])];
    let mut known = machine.watched();
    known.until(&gpus, |known| !known.notices().is_empty());
    assert_eq!(known.notices(), [WorkloadNotice::OtherPidNamespace]);
    assert_eq!(known.of_gpu(&gpus[0]), [""; 0]);
}

#[test]
fn local_process_with_an_open_cuda_device_matches_in_a_container() {
    let machine = Machine::new();
    machine.is_in_namespace("pid:[4026532999]");
    machine.runs(7, "PULSETRAIN_RUN_ID=ours");
    machine.opens(7, "/dev/nvidia-uvm");
    machine.runs(8, "PULSETRAIN_RUN_ID=stranger");
    machine.opens(8, "/dev/nvidia0");
    let gpus = [gpu(0, &[7]), gpu(1, &[8])];
    let mut known = machine.watched();
    known.until(&gpus, |known| {
        known.of_gpu(&gpus[0]).contains(&"train.run.id=ours".to_owned())
    });
    assert_eq!(known.of_gpu(&gpus[1]), [""; 0]);
}

#[test]
fn launched_run_gets_its_visible_gpus_when_no_process_is_listed() {
    let machine = Machine::new();
    let variables = [
        ("PULSETRAIN_RUN_ID", "ours"),
        ("RANK", "3"),
        ("CUDA_VISIBLE_DEVICES", "1"),
    ];
    let ours = Workload::of_variables(|name| {
        let found = variables.iter().find(|(known, _)| *known == name)?;
        Some(found.1.to_owned())
    });
    let mut known = Attributed::by(WorkloadConfig {
        proc: machine.proc(),
        kubelet: None,
        ours: Some(ours),
    });
    let idle = [gpu(0, &[]), gpu(1, &[])];
    known.until(&idle, |known| {
        known.of_gpu(&idle[1]) == ["train.run.id=ours", "train.rank=3"]
    });
    assert_eq!(known.of_gpu(&idle[0]), [""; 0], "it was not given that one");
    let elsewhere = [gpu(0, &[]), gpu(1, &[777])];
    known.until(&elsewhere, |known| {
        known.of_gpu(&elsewhere[1]) == ["train.run.id=ours", "train.rank=3"]
    });
    machine.runs(9, "PULSETRAIN_RUN_ID=other");
    let busy = [gpu(0, &[9]), gpu(1, &[])];
    known.until(&busy, |known| known.of_gpu(&busy[1]).is_empty());
    machine.ends(9);
}

#[test]
fn device_indices_of_mixed_models_are_used_only_in_pci_bus_order() {
    let machine = Machine::new();
    machine.runs(1, "PULSETRAIN_RUN_ID=r CUDA_VISIBLE_DEVICES=1");
    machine.runs(
        2,
        "PULSETRAIN_RUN_ID=r CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID",
    );
    machine.runs(3, "PULSETRAIN_RUN_ID=r CUDA_VISIBLE_DEVICES=0,GPU-1111");
    machine.runs(4, "PULSETRAIN_RUN_ID=r");
    let of_models = |models: [&str; 2]| {
        [0, 1].map(|index| Gpu {
            name: models[index as usize].to_owned(),
            ..gpu(index, &[1, 2, 3, 4])
        })
    };
    let numbers = |gpus: &[Gpu; 2], known: &mut Attributed| {
        let of = |process| {
            let all = known.labels(Subject::Process(&gpus[1], process));
            all.into_iter().find(|known| known.starts_with("device.id"))
        };
        gpus[1].processes.iter().map(of).collect::<Vec<_>>()
    };
    let (first, second) = (
        Some("device.id=cuda:0".to_owned()),
        Some("device.id=cuda:1".to_owned()),
    );
    let same = of_models(["NVIDIA A100", "NVIDIA A100"]);
    let mut known = machine.watched();
    let all = [first.clone(), first.clone(), second.clone(), second.clone()];
    known.until(&same, |known| numbers(&same, known) == all);
    assert_eq!(known.notices(), []);
    let mixed = of_models(["NVIDIA T400", "NVIDIA A100"]);
    known.until(&mixed, |known| {
        numbers(&mixed, known) == [None, first.clone(), second.clone(), None]
    });
    assert_eq!(known.notices(), [WorkloadNotice::UnknownOrder]);
}
