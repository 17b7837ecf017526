"""Experiments 3 to 5: values of the moment, energy against power, and the period of the energy counter."""

import time

import nvidia_smi
from agent import Agent
from experiment import between, experiment, holds, measured, within

MEBI = 1048576
# A field, the series, the factor to the unit of the field, and the tolerance as a share and as an amount.
MOMENTS = [
    ("temperature.gpu", "gpu_temperature_celsius", {"gpu_temperature_sensor": "gpu"}, 1, 0, 1),
    ("temperature.memory", "gpu_temperature_celsius", {"gpu_temperature_sensor": "memory"}, 1, 0, 1),
    ("memory.used", "gpu_memory_used_bytes", {}, 1 / MEBI, 0, 1),
    ("clocks.sm", "gpu_clock_frequency_hertz", {"gpu_clock_domain": "sm"}, 1e-6, 0.01, 0),
    ("power.draw.instant", "gpu_power_watts", {"gpu_power_reading": "instant"}, 1, 0.02, 1),
    ("power.draw.average", "gpu_average_power_watts", {}, 1, 0.02, 1),
]
ROUNDS = 5


@experiment(3, "Values between two reads of nvidia-smi", "nvidia-smi")
def bracket(context):
    with Agent(context) as agent:
        agent.wait_ready()
        yield from brackets(context, agent, "idle")
        if reason := context.lacks("load"):
            return context.skip(f"under load: {reason}")
        with context.load("matmul", seconds=context.seconds(60)) as load:
            load.wait_ready()
            time.sleep(2)
            yield from brackets(context, agent, "load")


def brackets(context, agent, state):
    """Ours lies between the lowest and the highest of what nvidia-smi read around it, in all rounds but one."""
    known = [one for one in MOMENTS if nvidia_smi.has_field(context, one[0])]
    fields = [one[0] for one in known]
    inside, last = [0] * len(known), [None] * len(known)
    for _ in range(ROUNDS):
        reads = [nvidia_smi.query(context, fields, context.gpu)[0]]
        # Readings are up to an interval old: the bracket covers the time in which ours was read.
        for _ in range(4):
            time.sleep(0.4)
            reads.append(nvidia_smi.query(context, fields, context.gpu)[0])
        page = agent.page(f"page-{state}")
        reads.append(nvidia_smi.query(context, fields, context.gpu)[0])
        for place, (_, name, labels, factor, relative, absolute) in enumerate(known):
            numbers = [value for read in reads if (value := nvidia_smi.number(read[place])) is not None]
            ours = page.one(name, gpu_index=str(context.gpu), **labels)
            if not numbers or ours is None:
                inside[place] += not numbers and ours is None
                continue
            low, high = min(numbers), max(numbers)
            slack = max(absolute, relative * high)
            last[place] = (ours * factor, low, high)
            inside[place] += low - slack <= ours * factor <= high + slack
    for place, (field, *_, relative, absolute) in enumerate(known):
        ours, low, high = last[place] or ("absent",) * 3
        yield holds(f"{state}: {field}, {inside[place]} of {ROUNDS} inside", ours,
                    f"{low} to {high}, +/- {absolute or f'{relative:.0%}'}", inside[place] >= ROUNDS - 1)


@experiment(4, "Energy is the sum of the power", "nvidia-smi")
def energy(context):
    with Agent(context) as agent:
        agent.wait_ready()
        yield energy_row(context, agent, "idle", 0.03)
        if reason := context.lacks("load"):
            return context.skip(f"under load: {reason}")
        with context.load("matmul", seconds=context.seconds(120) + 10) as load:
            load.wait_ready()
            time.sleep(2)
            yield energy_row(context, agent, "load", 0.02)


def energy_row(context, agent, state, tolerance):
    """Watts as the growth of the energy counter against the mean of power.draw.instant of the same time."""
    seconds, reads = context.seconds(120), []
    begin = time.time()
    while time.time() < begin + seconds:
        asked = time.time()
        watts = nvidia_smi.number(nvidia_smi.query(context, ["power.draw.instant"], context.gpu)[0][0])
        if watts is None:
            raise RuntimeError("nvidia-smi has no power.draw.instant")
        reads.append(((asked + time.time()) / 2, watts))
        time.sleep(0.15)
    time.sleep(1.5)
    points = [one for one in agent.points("gpu.energy", gpu__index=context.gpu) if one.value is not None]
    # The counter moves in steps: its value is that of the time at which it changed.
    changes = [two for one, two in zip(points, points[1:]) if two.value > one.value]
    inside = [one for one in changes if reads[0][0] <= one.seconds <= reads[-1][0]]
    if len(inside) < 2:
        raise RuntimeError("there are no points of gpu.energy")
    first, last = inside[0], inside[-1]
    ours = (last.value - first.value) / (last.seconds - first.seconds)
    # The mean over time, not over reads: reads are not evenly spaced.
    pairs = [(one, two) for one, two in zip(reads, reads[1:]) if first.seconds <= one[0] and two[0] <= last.seconds]
    area = sum((one[1] + two[1]) / 2 * (two[0] - one[0]) for one, two in pairs)
    reference = area / sum(two[0] - one[0] for one, two in pairs)
    return within(f"{state}: watts of gpu.energy over {last.seconds - first.seconds:.0f} s", ours, reference, relative=tolerance)


@experiment(5, "Period of the energy counter", "nvml")
def period(context):
    nvml = context.nvml()
    device = nvml.device(context.gpu)
    seen = nvml.watch_energy(device, context.seconds(20))
    context.keep("energy.csv", "\n".join(",".join(map(repr, one)) for one in seen))
    changes = [two for one, two in zip(seen, seen[1:]) if two[1] != one[1]]
    gaps = sorted(two[0] - one[0] for one, two in zip(changes, changes[1:]))
    if len(gaps) < 3:
        raise RuntimeError(f"the counter changed {len(changes)} times")
    costs = sorted(two[0] - one[0] for one, two in zip(seen, seen[1:]))
    delays = sorted(abs(one[0] - one[2]) for one in seen)
    yield between("median time between changes, ms", gaps[len(gaps) // 2] * 1000, 5, 600)
    yield measured("90 % of the changes are within, ms", gaps[len(gaps) * 9 // 10] * 1000)
    yield between("median of the driver's stamp against the clock, ms", delays[len(delays) // 2] * 1000, 0, 100)
    yield measured("a call takes in the median, us", costs[len(costs) // 2] * 1e6)
    yield measured("latency by the driver's own measure, us", sorted(one[3] for one in seen)[len(seen) // 2])
