"""Experiments 7 to 10: bytes over PCI Express and NVLink, and whether links are up."""

import re
import time

from agent import Agent
from experiment import Skip, between, equal, experiment, holds, measured, within
from nvml import LINK_STATE, NvmlError

MEBI = 1048576
MOST_LINKS = 72
SETTLE_SECONDS = 2.5


@experiment(7, "Bytes over PCI Express", "load")
def pcie_bytes(context):
    with Agent(context) as agent:
        agent.wait_ready()
        reason = unavailable(agent.page(), context, "gpu.pcie.io")
        if reason:
            # No number is better than one that is plausible and wrong.
            yield holds("gpu.pcie.io", f"absent: {reason}", "bytes, or a reason", True)
            return
        for rate in (1, 2, 4, 8, 20):
            yield copied(context, agent, "h2d", "receive", rate)
        yield copied(context, agent, "d2h", "transmit", 20)


def copied(context, agent, direction, label, rate):
    gigabytes = context.seconds(20) * rate if context.arguments.time_scale < 1 else max(20, rate * 5)
    with context.load("copy", direction=direction, gigabytes=gigabytes, rate=rate) as load:
        load.wait_ready()
        done = load.wait()
    time.sleep(SETTLE_SECONDS)
    ours, seconds = growth(agent, context, "gpu.pcie.io", done, gpu__io__direction=label)
    expected = done["bytes"] / (done["end"] - done["begin"]) * seconds
    # Packets have headers: the link carries somewhat more than the bytes of the copy.
    return between(f"{label} at {rate} GB/s: bytes of the link / bytes copied", ours / expected, 0.99, 1.15)


def growth(agent, context, name, done, **attributes):
    """The growth of a counter and the seconds between its first and its last point within a copy."""
    points = [one for one in agent.points(name, gpu__index=context.gpu, **attributes) if one.value is not None]
    inside = [one for one in points if done["begin"] <= one.seconds <= done["end"]]
    if len(inside) < 2:
        raise RuntimeError(f"{len(inside)} points of {name} within the copy; copy for longer")
    if inside[0].start != inside[-1].start:
        raise RuntimeError(f"{name} begins again within the copy")
    return inside[-1].value - inside[0].value, inside[-1].seconds - inside[0].seconds


def unavailable(page, context, metric):
    found = page.all("gpu_metric_unavailable", gpu_index=str(context.gpu), gpu_metric_name=metric)
    return found[0][0]["gpu_unavailable_reason"] if found else None


@experiment(8, "Throughput of PCI Express by performance counters", "load")
def pcie_throughput(context):
    with Agent(context) as agent:
        agent.wait_ready()
        if reason := unavailable(agent.page(), context, "gpu.pcie.throughput"):
            raise Skip(f"gpu.pcie.throughput is unavailable: {reason}")
        for direction, label, other in (("h2d", "receive", "transmit"), ("d2h", "transmit", "receive")):
            with context.load("copy", direction=direction, gigabytes=context.seconds(20) * 8, rate=8) as load:
                load.wait_ready()
                done = load.wait()
            time.sleep(SETTLE_SECONDS)
            rate = done["bytes"] / (done["end"] - done["begin"])
            yield within(f"{direction}: {label}, B/s", mean(agent, context, "gpu.pcie.throughput", done, label), rate, relative=0.1)
            against = mean(agent, context, "gpu.pcie.throughput", done, other)
            yield holds(f"{direction}: {other}, B/s", against, f"below {rate / 5:.3g}", against < rate / 5)


def mean(agent, context, name, done, direction):
    points = agent.points(name, gpu__index=context.gpu, gpu__io__direction=direction)
    # A value is the mean since the pass before, so the first one within the copy has some time before it.
    inside = [one.value for one in points if done["begin"] + 1.2 <= one.seconds <= done["end"] and one.value is not None]
    if not inside:
        raise RuntimeError(f"no points of {name} within the copy")
    return sum(inside) / len(inside)


@experiment(9, "Bytes over NVLink", "load", "two GPUs", "nvidia-smi")
def nvlink_bytes(context):
    with Agent(context) as agent:
        page = agent.wait_ready()
        if not page.all("gpu_nvlink_io_bytes_total", gpu_index=str(context.gpu)):
            raise Skip("the GPU has no NVLink counters")
        time.sleep(6)
        before, smi_before = agent.page("before"), smi_bytes(context)
        with context.load("peer", to=1 - context.gpu if context.gpu < 2 else 0, gigabytes=context.seconds(10) * 10, rate=10) as load:
            load.wait_ready()
            done = load.wait()
        # Links are read every 5 s.
        time.sleep(6)
        after, smi_after = agent.page("after"), smi_bytes(context)
        labels = {"gpu_index": str(context.gpu), "gpu_io_direction": "transmit"}
        total = lambda page: page.sum("gpu_nvlink_io_bytes_total", **labels)
        ours = total(after) - total(before)
        yield between("transmit: bytes of all links / bytes copied", ours / done["bytes"], 0.99, 1.1)
        yield within("transmit: bytes of all links against nvidia-smi nvlink -gt d", ours, smi_after - smi_before, relative=0.01)
        seconds = done["end"] - done["begin"]
        rate = mean(agent, context, "gpu.nvlink.throughput", done, "transmit")
        yield within(f"gpu.nvlink.throughput over {seconds:.0f} s, B/s", rate, done["bytes"] / seconds, relative=0.1)


def smi_bytes(context):
    """Bytes sent over all links, as nvidia-smi prints them in KiB."""
    output = context.run(["nvidia-smi", "nvlink", "-gt", "d", "-i", str(context.gpu)], label="nvlink")
    return 1024 * sum(int(kib) for kib in re.findall(r"Tx:\s*(\d+)\s*KiB", output))


@experiment(10, "Links that are up, idle and at work", "nvml", "nvidia-smi")
def nvlink_states(context):
    device = context.nvml().device(context.gpu)
    # A state cannot be read of a link that does not exist.
    links = [link for link in range(MOST_LINKS) if state(context, device, link) is not None]
    if not links:
        raise Skip("the GPU has no NVLink")
    seen = {}
    with Agent(context) as agent:
        agent.wait_ready()
        end = time.time() + context.seconds(60)
        while time.time() < end:
            for link in links:
                seen.setdefault(link, set()).add(state(context, device, link))
            time.sleep(1)
        page = agent.page()
    yield measured("states seen (1 active, 2 sleeping)", sorted(set().union(*seen.values())))
    steady = {link: next(iter(states)) for link, states in seen.items() if len(states) == 1}
    ups = {link: page.one("gpu_nvlink_up", gpu_index=str(context.gpu), gpu_link_index=str(link)) for link in steady}
    wrong = sorted(link for link, value in steady.items() if ups[link] != (value in (1, 2)))
    yield equal(f"links whose gpu.nvlink.up is not that of field {LINK_STATE}, of {len(steady)}", wrong, [])
    output = context.run(["nvidia-smi", "nvlink", "-s", "-i", str(context.gpu)], label="nvlink-status")
    active = len(re.findall(r"Link \d+: [\d.]+ GB/s", output))
    sleeping = len(re.findall(r"Link \d+: .*sleep", output, re.IGNORECASE))
    if len(steady) == len(links):
        yield equal("links that are up", sum(value == 1 for value in ups.values()), active + sleeping)


def state(context, device, link):
    try:
        return context.nvml().field(device, LINK_STATE, link).value & 0xFFFFFFFF
    except NvmlError:
        return None
