"""Experiments 21 and 22: what reading the GPUs costs, and whether training notices it."""

import os
import time

from agent import Agent
from experiment import between, experiment, holds, measured

# How the names of the threads begin that call the driver.
READERS = ("gpus", "nvml")


@experiment(21, "Cost of reading")
def cost(context):
    with Agent(context) as agent:
        agent.wait_ready()
        time.sleep(5)
        pid, began = agent.pid(), time.time()
        first, before = thread_seconds(pid), agent.page("before")
        time.sleep(context.seconds(600))
        last, seconds = thread_seconds(pid), time.time() - began
        after = agent.page("after")
        used = {thread: value - first.get(thread, 0) for thread, value in last.items()}
        reading = sum(value for (name, _), value in used.items() if name.startswith(READERS)) / seconds
        yield holds("threads that call the driver: share of a core", f"{reading:.3%}", "below 0.5 %", reading < 0.005)
        yield measured("all threads of the agent, with page and file: share of a core", f"{sum(used.values()) / seconds:.3%}")
        p50, p99 = (percentile(before, after, part) for part in (0.5, 0.99))
        yield measured("median of a pass: at most, s", p50)
        yield between("99th percentile of a pass: at most, s", p99, 0, 0.2)
        latencies = [value for _, value in after.all("gpu_driver_latency_seconds")]
        if latencies:
            yield measured("latency of the fields of a pass, by the driver's own measure, ms", max(latencies) * 1000)
        yield measured("GPUs", len({labels["gpu_index"] for labels, _ in after.all("gpu_memory_used_bytes")}))


def thread_seconds(pid):
    """Seconds on the processor by name and number of the thread."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as file:
                name = file.read().strip()
            with open(f"/proc/{pid}/task/{task}/schedstat") as file:
                found[name, task] = int(file.read().split()[0]) / 1e9
        except OSError:
            continue
    return found


def percentile(before, after, part):
    """The upper bound of the bucket in which a share of the passes ends."""
    bucket = lambda page: {labels["le"]: value for labels, value in page.all("pulsetrain_source_duration_seconds_bucket", pulsetrain_source_name="nvml")}
    first, last = bucket(before), bucket(after)
    counts = sorted((float(bound.replace("+Inf", "inf")), last[bound] - first.get(bound, 0)) for bound in last)
    if not counts or counts[-1][1] == 0:
        raise RuntimeError("no pass was counted")
    return next(bound for bound, count in counts if count >= part * counts[-1][1])


@experiment(22, "Training with and without the agent", "load")
def perturbation(context):
    count, speeds, slowest = context.count(500, 30), {}, {}
    # The order compensates for a GPU that warms up.
    for interval in (None, "1s", "100ms", "100ms", "1s", None):
        agent = Agent(context, f"agent-{interval}", gpu={"interval": interval}) if interval else None
        try:
            if agent:
                agent.wait_ready()
            with context.load("train", count=count) as load:
                load.wait_ready()
                done = load.wait()
        finally:
            if agent:
                agent.stop()
        speeds.setdefault(interval, []).append(done["tokens_per_second"])
        slowest.setdefault(interval, []).append(done["p99_step"])
    mean = lambda values: sum(values) / len(values)
    spread = max(speeds[None]) / min(speeds[None]) - 1
    yield measured("tokens a second without the agent, and the difference of its two runs", f"{mean(speeds[None]):.6g}, {spread:.3%}")
    for interval in ("1s", "100ms"):
        slower = 1 - mean(speeds[interval]) / mean(speeds[None])
        yield holds(f"interval {interval}: slower by", f"{slower:.3%}", "at most 0.3 %, or the difference without it", slower <= max(0.003, spread))
        longer = mean(slowest[interval]) / mean(slowest[None]) - 1
        yield holds(f"interval {interval}: 99th percentile of a step longer by", f"{longer:.3%}", "at most 1 %, or 3 times the difference", longer <= max(0.01, 3 * spread))
