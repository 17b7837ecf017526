"""Experiments 13 to 15: processes on a GPU, clients of MPS, and namespaces of process numbers."""

import os
import re
import subprocess
import time

from agent import Agent
from experiment import Skip, equal, experiment, holds, measured, within

MEBI = 1048576


@experiment(13, "Processes, one of them idle", "load", "nvidia-smi")
def processes(context):
    with context.load("hold", gigabytes=2, seconds=600) as idle, context.load("matmul", seconds=600) as busy:
        idle.wait_ready()
        busy.wait_ready()
        with Agent(context) as agent:
            agent.wait_ready()
            end, seen = time.time() + max(context.seconds(20), 12), {}
            while time.time() < end:
                for pid, row in pmon(context).items():
                    seen.setdefault(pid, []).append(row)
                time.sleep(1)
            page = agent.page()
            utilization = [one for one in agent.points("gpu.process.utilization", gpu__index=context.gpu) if one.value is not None]
    for load in (idle, busy):
        name = "idle" if load is idle else "busy"
        yield holds(f"the {name} process is listed", load.process.pid in series(page, context), f"process {load.process.pid}",
                    load.process.pid in series(page, context))
    yield equal("processes with memory", sorted(series(page, context)), sorted(seen))
    for pid, rows in sorted(seen.items()):
        if rows[-1]["memory"] is not None:
            yield within(f"process {pid}: MiB", series(page, context).get(pid, -1) / MEBI, rows[-1]["memory"], absolute=1)
        ours = [one.value for one in utilization if str(one.attributes.get("process.pid")) == str(pid)
                and one.attributes.get("gpu.engine.name") == "sm"]
        reference = [row["sm"] or 0 for row in rows]
        if ours:
            yield within(f"process {pid}: share of the multiprocessors, %", 100 * sum(ours) / len(ours), sum(reference) / len(reference), absolute=5)
        else:
            yield holds(f"process {pid}: share of the multiprocessors", "absent", "0 where it is idle", False)
    highest = max([one.value for one in utilization], default=0)
    yield holds("highest share of a process", highest, "at most 1", highest <= 1)


def series(page, context):
    """Bytes by the number of the process."""
    found = page.all("gpu_process_memory_bytes", gpu_index=str(context.gpu))
    return {int(labels["process_pid"]): value for labels, value in found if "process_pid" in labels}


def pmon(context):
    """Memory in MiB and the share of the multiprocessors in percent by process; `None` for what is not there."""
    output = context.run(["nvidia-smi", "pmon", "-c", "1", "-s", "um", "-i", str(context.gpu)], label="pmon")
    header = next(line for line in output.splitlines() if re.match(r"#\s*gpu", line)).lstrip("# ").split()
    rows = {}
    for line in output.splitlines():
        cells = line.split()
        if not line.startswith("#") and len(cells) >= len(header) and cells[header.index("pid")].isdigit():
            cell = lambda name: int(cells[header.index(name)]) if cells[header.index(name)].isdigit() else None
            rows[cell("pid")] = {"sm": cell("sm"), "memory": cell("fb")}
    return rows


@experiment(14, "Clients of MPS", "load", "nvidia-cuda-mps-control")
def mps(context):
    folder = context.folder("mps")
    environment = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
    control = ["env", *(f"{name}={value}" for name, value in environment.items()), "nvidia-cuda-mps-control"]
    context.run([*control, "-d"], label="mps")
    try:
        loads = [context.load("hold", environment, gigabytes=1, seconds=600) for _ in range(2)]
        try:
            for load in loads:
                load.wait_ready()
            with Agent(context) as agent:
                agent.wait_ready()
                time.sleep(5)
                listed = series(agent.page(), context)
            for load in loads:
                yield holds("a client is listed with its memory", listed.get(load.process.pid, "absent"),
                            f"process {load.process.pid}, at least 1e+09", listed.get(load.process.pid, 0) >= 1e9)
        finally:
            for load in loads:
                load.stop()
    finally:
        subprocess.run(control, input="quit\n", text=True, timeout=60, stdout=subprocess.DEVNULL)


@experiment(15, "Namespaces of process numbers", "load", "root", "unshare")
def namespaces(context):
    marks = {"PULSETRAIN_RUN_ID": "gpu-check", "RANK": "3", "WORLD_SIZE": "4"}
    with context.load("hold", marks, gigabytes=1, seconds=600) as load:
        load.wait_ready()
        with Agent(context, "host") as agent:
            agent.wait_ready()
            time.sleep(5)
            page = agent.page("host")
        if load.process.pid not in series(page, context):
            raise Skip("the driver does not list the processes of this namespace")
        yield equal("in the namespace of the host: ranks of the GPU", ranks(page, context), ["3"])
        wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
        with Agent(context, "container", wrapper=wrapper) as agent:
            agent.wait_ready()
            time.sleep(5)
            page = agent.page("container")
        listed = sorted(series(page, context))
        yield measured("in a namespace of its own: processes that the driver lists", len(listed))
        yield equal("in a namespace of its own: ranks of a stranger", ranks(page, context), [])
    yield measured("driver", module_license())


def ranks(page, context):
    """The ranks on the series of the GPU and of its processes."""
    found = page.all("gpu_process_memory_bytes", gpu_index=str(context.gpu)) + page.all("gpu_memory_used_bytes", gpu_index=str(context.gpu))
    return sorted({labels["train_rank"] for labels, _ in found if "train_rank" in labels})


def module_license():
    """Whether the kernel modules are the open ones."""
    path = "/proc/driver/nvidia/version"
    if not os.path.exists(path):
        return "no kernel module"
    with open(path) as file:
        return "open kernel modules" if "Open" in file.read() else "proprietary kernel modules"
