"""Experiments 16 and 17: GPUs of other jobs, and GPUs that are split."""

import re
import time

from agent import Agent
from experiment import Skip, equal, experiment, holds, within
from nvml import NvmlError

MEBI = 1048576


@experiment(16, "GPUs outside of the control group", "root", "systemd-run", "two GPUs")
def cgroups(context):
    allowed = [f"/dev/nvidia{context.gpu}", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    wrapper = ["systemd-run", "--pipe", "--wait", "--quiet", "-p", "DevicePolicy=strict"]
    wrapper += [word for path in allowed for word in ("-p", f"DeviceAllow={path} rw")]
    with Agent(context, wrapper=wrapper) as agent:
        agent.wait_ready()
        time.sleep(context.seconds(30))
        page, log = agent.page(), agent.log()
    read = sorted({labels["gpu_index"] for labels, _ in page.all("gpu_memory_used_bytes")})
    yield equal("GPUs with values", read, [str(context.gpu)])
    faults = [labels for labels, value in page.all("gpu_fault_active") if value]
    yield equal("faults of the others", len(faults), 0)
    yield equal("notices of lost GPUs in the log", len(re.findall(r"no longer answers|\blost\b", log)), 0)
    # A driver that is loaded again and again reports its GPUs each time.
    yield equal("times that the GPUs were found", log.count("observing "), 1)


@experiment(17, "GPUs that are split", "nvml", "nvidia-smi")
def mig(context):
    nvml = context.nvml()
    device = nvml.device(context.gpu)
    try:
        instances = nvml.mig_devices(device)
    except NvmlError as error:
        raise Skip(f"the GPU cannot be split: {error}")
    if not instances:
        raise Skip("the GPU is not split; split it with nvidia-smi mig -cgi")
    with Agent(context) as agent:
        agent.wait_ready()
        page = agent.page()
        listed = context.run(["nvidia-smi", "-L"], label="list")
        uuids = re.findall(r"UUID: (MIG-[0-9a-f-]+)", listed)
        infos = {labels["gpu_mig_instance_id"] for labels, _ in page.all("gpu_mig_memory_limit_bytes", gpu_index=str(context.gpu))}
        yield equal("GPU instances", sorted(map(int, infos)), sorted({instance for _, instance, _ in instances}))
        if nvml.count() == 1:
            yield equal("MIG devices by nvidia-smi -L", len(page.all("gpu_mig_memory_limit_bytes")), len(uuids))
        for handle, instance, compute in instances:
            labels = {"gpu_index": str(context.gpu), "gpu_mig_instance_id": str(instance)}
            ours = [value for own, value in page.all("gpu_mig_memory_used_bytes", **labels)
                    if own.get("gpu_mig_compute_instance_id", str(compute)) == str(compute)]
            memory = nvml.memory(handle)
            yield within(f"instance {instance}: MiB used", ours[0] / MEBI if ours else -1, memory.used / MEBI, absolute=1)
        if reason := context.lacks("disruptive") or context.lacks("root"):
            return context.skip(f"instances that are destroyed: {reason}")
        victim = instances[0][1]
        labels = {"gpu_index": str(context.gpu), "gpu_mig_instance_id": str(victim)}
        context.run(["nvidia-smi", "mig", "-dci", "-gi", str(victim), "-i", str(context.gpu)], label="destroy")
        context.run(["nvidia-smi", "mig", "-dgi", "-gi", str(victim), "-i", str(context.gpu)], label="destroy")
        began = time.time()
        agent.wait(lambda page: not page.all("gpu_mig_memory_used_bytes", **labels), 60, "end of the destroyed instance")
        ended = time.time() - began
        yield holds(f"series of instance {victim} end after, s", ended, "at most 12", ended <= 12)
