"""Experiments 19, 20 and 25: XID errors, a GPU that fails, and a GPU whose calls hang."""

import json
import os
import subprocess
import time

import faulty_driver
from agent import Agent
from experiment import between, equal, experiment, holds, measured


@experiment(19, "XID errors of a program", "load")
def xid(context):
    with Agent(context) as agent:
        page = agent.wait_ready()
        labels = {"gpu_index": str(context.gpu)}
        before = page.sum("gpu_xid_errors_total", **labels)
        for number in range(2):
            with context.load("crash") as load:
                load.wait_ready()
                done = load.wait()
            agent.wait(lambda page: page.sum("gpu_xid_errors_total", **labels) >= before + number + 1, 15, "XID error")
            events = [one for one in agent.points("gpu.xid") if one.seconds >= done["end"] - 10]
            yield between(f"crash {number + 1}: the event comes after, s", min(one.seconds for one in events) - done["end"], -10, 3)
        page = agent.page("after")
        yield equal("XID errors counted", page.sum("gpu_xid_errors_total", **labels) - before, 2.0)
        codes = sorted({str(one.attributes.get("gpu.xid.code")) for one in agent.points("gpu.xid")})
        yield measured("codes", codes)
    code, output = context.try_run(["dmesg"], label="dmesg")
    if code == 0 and "NVRM: Xid" in output:
        yield measured("lines of dmesg with an Xid", output.count("NVRM: Xid"))


@experiment(20, "A GPU that fails costs no other GPU a point", "cc", "two GPUs")
def failing(context):
    yield from next_to_a_faulty_gpu(context, "fail", "driver_error")


@experiment(25, "A GPU that hangs costs no other GPU a point", "cc", "two GPUs")
def hanging(context):
    yield from next_to_a_faulty_gpu(context, "hang", "unresponsive")
    yield from run_ends(context)


def next_to_a_faulty_gpu(context, mode, fault):
    victim, other = context.gpu, 0 if context.gpu else 1
    driver = faulty_driver.build(context, victim)
    with Agent(context, gpu={"library": driver.library}) as agent:
        agent.wait_ready()
        driver.switch(mode)
        began = time.time()
        seconds = max(context.seconds(60), 12)
        try:
            agent.wait(lambda page: not page.all("gpu_temperature_celsius", gpu_index=str(victim)), 30, "end of its series")
            yield between("series of the faulty GPU end after, s", time.time() - began, 0, 7)
            page = agent.wait(lambda page: page.one("gpu_fault_active", gpu_index=str(victim), gpu_fault=fault) == 1, 30, "fault")
            yield equal("fault", [labels["gpu_fault"] for labels, value in page.all("gpu_fault_active", gpu_index=str(victim)) if value], [fault])
            time.sleep(max(began + seconds - time.time(), 0))
            end = time.time()
            times = sorted(one.seconds for one in agent.points("gpu.memory.used", gpu__index=other) if began <= one.seconds <= end)
            yield between("points a second of another GPU", len(times) / (end - began), 0.85, 1.15)
            gaps = [two - one for one, two in zip(times, times[1:])]
            yield between("longest gap of another GPU, s", max(gaps), 0, 2.5)
            yield holds("the log names the GPU", "named" if f"GPU {victim}" in agent.log() else "not named", f"GPU {victim}", f"GPU {victim} " in agent.log())
        finally:
            driver.switch("")
        agent.wait(lambda page: page.all("gpu_temperature_celsius", gpu_index=str(victim)), 90, "return of its series")
        yield holds("the GPU is back", "yes", "yes", True)
        driver.switch(mode)
        time.sleep(2)
        took = agent.stop()
        driver.switch("")
        yield holds("the agent ends after SIGTERM, s", "killed" if took is None else took, "at most 10", took is not None and took <= 10)


def run_ends(context):
    """`pulsetrain run` ends with its trainer while the driver hangs."""
    driver = faulty_driver.build(context, context.gpu)
    folder = context.folder("run")
    config = os.path.join(folder, "run.yaml")
    with open(config, "w") as file:
        json.dump({"gpu": {"interval": "1s", "library": driver.library}}, file)
    # The trainer lets the driver hang, works for 3 s and fails with a code of its own.
    trainer = ["sh", "-c", f"sleep 3; printf hang > {driver.switch_file}; sleep 3; date +%s.%N > {folder}/ended; exit 7"]
    command = [context.pulsetrain, "run", "--config", config, "--to", os.path.join(folder, "out.jsonl"), "--", *trainer]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        with open(os.path.join(folder, "ended")) as file:
            yield between("run ends after its trainer, s", time.time() - float(file.read()), 0, 10)
        yield equal("exit code of run", done.returncode, 7)
        context.keep("run.txt", done.stdout + done.stderr)
    finally:
        driver.switch("")
