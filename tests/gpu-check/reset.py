"""Experiments 18 and 24: a reset while the agent runs, and the GPU without persistence."""

import re
import time

import nvidia_smi
from agent import Agent
from experiment import between, equal, experiment, holds, measured


@experiment(18, "A reset needs a release", "nvidia-smi", "root", "disruptive")
def reset(context):
    context.close_nvml()
    command = ["nvidia-smi", "-i", str(context.gpu), "-r"]
    with Agent(context) as agent:
        agent.wait_ready()
        code, output = context.try_run(command, label="reset")
        yield holds("reset while the agent reads", code, "refused: in use", code != 0 and re.search("in use|being used", output))
        status, _ = agent.post("/gpu/release?for=5m")
        yield equal("POST /gpu/release", status, 200)
        agent.wait(lambda page: not page.all("gpu_power_watts"), 30, "end of the series")
        code, output = context.try_run(command, label="reset")
        yield equal("reset after the release", code, 0)
        status, _ = agent.post("/gpu/resume")
        yield equal("POST /gpu/resume", status, 200)
        began = time.time()
        agent.wait(lambda page: page.all("gpu_power_watts", gpu_index=str(context.gpu)), 120, "power of the GPU")
        yield between("values are back after, s", time.time() - began, 0, 60)


@experiment(24, "Starts and ends of the agent", "nvidia-smi")
def starts(context):
    modes = nvidia_smi.query(context, ["persistence_mode"], context.gpu)[0][0]
    yield measured("persistence", modes)
    idle = watts(context)
    energies, starts, times = [], [], []
    for number in range(5):
        with Agent(context, f"agent-{number}") as agent:
            began = time.time()
            agent.wait(lambda page: page.all("gpu_energy_joules_total") or page.all("gpu_info"), 60, "GPU")
            times.append(time.time() - began)
            time.sleep(1.5)
            points = [one for one in agent.points("gpu.energy", gpu__index=context.gpu) if one.value is not None]
            with_agent = watts(context) if number == 4 else None
        if points:
            energies.append(points[-1].value)
            starts.append(points[-1].start)
    yield holds("longest time to the first values, s", max(times), "at most 30", max(times) <= 30)
    if energies:
        # A counter that falls has been reset, and its points begin anew then.
        fell = [place for place in range(1, len(energies)) if energies[place] < energies[place - 1]]
        wrong = [place for place in fell if starts[place] <= starts[place - 1]]
        yield measured("the energy counter was reset by the driver", len(fell))
        yield equal("resets without a new start time", len(wrong), 0)
    if idle is not None and with_agent is not None:
        yield measured("watts without and with the agent", f"{idle:.1f}, {with_agent:.1f}")


def watts(context):
    return nvidia_smi.number(nvidia_smi.query(context, ["power.draw.instant"], context.gpu)[0][0])
