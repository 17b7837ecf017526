"""Experiment 23: a power limit slows the GPU, and the time of that is counted."""

import time

import nvidia_smi
from agent import Agent
from experiment import between, equal, experiment, within

COUNTER = "clocks_event_reasons_counters.sw_power_cap"


@experiment(23, "Time at the power limit", "load", "nvidia-smi", "root", "disruptive")
def power_cap(context):
    limits = nvidia_smi.query(context, ["power.limit", "power.min_limit"], context.gpu)[0]
    labels = {"gpu_index": str(context.gpu), "gpu_throttle_reason": "sw_power_cap"}
    with context.load("matmul", seconds=600) as load, Agent(context) as agent:
        load.wait_ready()
        agent.wait_ready()
        try:
            context.run(["nvidia-smi", "-i", str(context.gpu), "-pl", limits[1]], label="limit")
            began = time.time()
            agent.wait(lambda page: page.one("gpu_throttle_active", **labels) == 1, 30, "gpu_throttle_active")
            yield between("gpu.throttle.active after, s", time.time() - began, 0, 3)
            first, before = nanoseconds(context), agent.page("before").one("gpu_throttle_time_seconds_total", **labels)
            time.sleep(context.seconds(60))
            last, after = nanoseconds(context), agent.page("after").one("gpu_throttle_time_seconds_total", **labels)
            if first is not None and last is not None:
                # Ours is up to an interval older at both ends.
                yield within("gpu.throttle.time grew by, s", after - before, last - first, relative=0.02, absolute=1.2)
            page = agent.page()
            yield equal("gpu.power_limit is the limit, W", page.one("gpu_power_limit_watts", gpu_index=str(context.gpu), gpu_power_limit_kind="enforced"), float(limits[1]))
        finally:
            context.run(["nvidia-smi", "-i", str(context.gpu), "-pl", limits[0]], label="limit")


def nanoseconds(context):
    """Seconds at the limit: the driver counts nanoseconds, nvidia-smi prints microseconds."""
    if not nvidia_smi.has_field(context, COUNTER):
        return None
    micros = nvidia_smi.number(nvidia_smi.query(context, [COUNTER], context.gpu)[0][0])
    return None if micros is None else micros / 1e6
