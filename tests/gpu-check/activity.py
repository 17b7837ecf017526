"""Experiments 11 and 12: performance counters under known work, and next to a profiler."""

import shutil
import subprocess
import time

from agent import Agent
from experiment import Skip, between, experiment, holds, measured, within
from links import unavailable

# A type of the matrices, and the pipe that multiplies them.
TYPES = [("bf16", "tensor"), ("fp32", "fp32"), ("fp64", "tensor_double")]


@experiment(11, "Pipes of the multiprocessors", "load")
def pipes(context):
    with Agent(context) as agent:
        agent.wait_ready()
        if reason := unavailable(agent.page(), context, "gpu.pipe.utilization"):
            raise Skip(f"gpu.pipe.utilization is unavailable: {reason}")
        for kind, pipe in TYPES:
            with context.load("matmul", type=kind, seconds=context.seconds(20) + 3) as load:
                load.wait_ready()
                done = load.wait()
            time.sleep(1.5)
            busy = mean(agent, context, done, "gpu.pipe.utilization", gpu__pipe=pipe)
            if done.get("peak"):
                share = done["flops_per_second"] / done["peak"]
                # Clocks below those of the data sheet raise the utilization for the same work.
                yield within(f"{kind}: {pipe}", busy, share, absolute=0.08 if kind == "bf16" else 0.25)
            else:
                yield holds(f"{kind}: {pipe}", busy, "above 0.3; the peak of this GPU is not known", busy > 0.3)
            yield between(f"{kind}: gpu.sm.active", mean(agent, context, done, "gpu.sm.active"), 0.95, 1)
            if kind == "bf16":
                for other in ("fp64", "tensor_double", "tensor_int"):
                    yield between(f"{kind}: {other}", mean(agent, context, done, "gpu.pipe.utilization", gpu__pipe=other), 0, 0.05)


def mean(agent, context, done, name, **attributes):
    points = agent.points(name, gpu__index=context.gpu, **attributes)
    inside = [one.value for one in points if done["begin"] + 1.2 <= one.seconds <= done["end"] and one.value is not None]
    if not inside:
        raise RuntimeError(f"no points of {name} {attributes} within the load")
    return sum(inside) / len(inside)


@experiment(12, "Next to a profiler")
def profiler(context):
    seconds = context.seconds(20)
    commands = {
        "nsys": ["nsys", "profile", f"--duration={int(seconds)}", "--gpu-metrics-devices=all", "-o", "/dev/null", "-f", "true", "sleep", str(int(seconds))],
        "dcgmi": ["dcgmi", "dmon", "-e", "1002,1004", "-d", "1000", "-c", str(int(seconds))],
    }
    name = next((name for name in commands if shutil.which(name)), None)
    if name is None:
        raise Skip("neither nsys nor dcgmi is in PATH")
    with Agent(context) as agent:
        agent.wait_ready()
        if reason := unavailable(agent.page(), context, "gpu.sm.active"):
            raise Skip(f"gpu.sm.active is unavailable: {reason}")
        begin = time.time()
        with open(f"{agent.folder}/{name}.txt", "w") as output:
            code = subprocess.run(commands[name], stdout=output, stderr=subprocess.STDOUT, timeout=seconds + 120).returncode
        end = time.time()
        yield measured(f"exit code of {name}", code)
        during = [one for one in agent.points("gpu.sm.active", gpu__index=context.gpu) if begin <= one.seconds <= end]
        values = sum(one.value is not None for one in during)
        reasons = [one for one in agent.points("gpu.metric.unavailable", gpu__index=context.gpu, gpu__metric__name="gpu.sm.active")
                   if begin <= one.seconds <= end + 2 and one.value == 1]
        yield measured("values of gpu.sm.active while the profiler ran", values)
        gaps = values < (end - begin) * 0.7
        why = sorted({one.attributes["gpu.unavailable.reason"] for one in reasons})
        yield holds("a gap has a reason", why or "no gap", "a reason where there is a gap", not gaps or why)
        agent.wait(lambda page: page.all("gpu_sm_active_ratio", gpu_index=str(context.gpu)), 90, "gpu_sm_active_ratio")
        yield between("back after, s", time.time() - end, 0, 65)
