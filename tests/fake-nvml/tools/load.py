#!/usr/bin/env python3
"""In the place of a load with torch: takes part in a fake driver's scenario as a load takes part in a GPU.

It registers itself as a process of the GPU, lasts as long as the work would last, and claims the figures of the scenario.
"""

import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenario as world

# The scenario has an XID error at these seconds.
CRASHES = (30000.0, 31000.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode")
    for name in ("gpu", "to", "size", "count"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("seconds", "work", "sleep", "gigabytes", "rate"):
        parser.add_argument(f"--{name}", type=float, default=0)
    for name in ("type", "windows", "library", "direction"):
        parser.add_argument(f"--{name}", default="")
    options = parser.parse_args()
    name = register(options.mode)
    try:
        MODES[options.mode](options)
    finally:
        os.unlink(os.path.join(world.FOLDER, name))


def register(mode):
    """Puts the process on the GPU: the scenario lists it by this file."""
    prefix = "mps" if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else mode
    for number in range(8):
        path = os.path.join(world.FOLDER, f"{prefix}-{number}")
        try:
            with open(path, "x") as file:
                file.write(f"{os.getpid()}\n")
            return f"{prefix}-{number}"
        except FileExistsError:
            continue
    sys.exit("too many loads")


def write(**message):
    print(json.dumps(message), flush=True)


def wait(seconds):
    write(ready=True)
    begin = time.time()
    time.sleep(seconds)
    return {"begin": begin, "end": time.time()}


def lead(*phases):
    """Leads the scenario forward to the seconds of some work, unless it is there. Counters never fall."""
    now = world.second()
    begin, _ = next(phase for phase in phases if now < phase[1])
    if now < begin:
        world.jump(begin)


def matmul(options):
    phases = {"bf16": (12000, 14000), "fp32": (14000, 16000), "fp64": (16000, 18000)}
    if options.type:
        lead(phases[options.type])
    times = wait(options.seconds)
    # The scenario keeps the pipe busy for half of the time.
    write(**times, flops_per_second=500e12, peak=1000e12)


def copy(options):
    """Copies as many bytes as the counter of the scenario counts; Pulsetrain reads a rate, which is another reading."""
    phases = {"h2d": [(2000, 4000), (6000, 8000)], "d2h": [(4000, 6000), (8000, 10000)]}
    name = {"h2d": "pcie.rx_bytes", "d2h": "pcie.tx_bytes"}[options.direction]
    lead(*phases[options.direction])
    move(options, [name])


def peer(options):
    links = range(int(world.Gpu(world.load(), options.gpu).read("nvlink.count")))
    begin, end = 11000, 11005
    options.gigabytes, options.rate = end - begin, 1
    lead((begin, end))
    move(options, [f"nvlink.{link}.tx_kib" for link in links], unit=1024)


def move(options, counters, unit=1):
    times = wait(max(options.gigabytes / options.rate, 5))
    first, last = (sum(count(options, name, times[border]) for name in counters) for border in ("begin", "end"))
    write(**times, bytes=(last - first) * unit)


def count(options, name, at):
    gpu = world.Gpu(world.load(), options.gpu, world.second() - (time.time() - at))
    parts = name.split(".")
    return gpu.part(parts[0], parts[1], parts[2]) if len(parts) == 3 else gpu.read(name)


def steps(options):
    """The steps of the other load, whose work is to wait."""
    sys.path.insert(0, os.environ["GPU_CHECK"])
    import load

    options.work, options.sleep, options.count = 0.35, 0.15, options.count
    load.steps(options, work=lambda: time.sleep(options.work))


def crash(options):
    """Leads the scenario to its next XID error."""
    write(ready=True)
    to = next(second for second in CRASHES if second > world.second())
    world.jump(to)
    time.sleep(0.5)
    write(end=time.time())


def train(options):
    write(ready=True)
    time.sleep(1)
    write(tokens_per_second=1e5, p99_step=0.1)


MODES = {
    "matmul": matmul,
    "hold": lambda options: wait(options.seconds) and write(done=True),
    "copy": copy,
    "peer": peer,
    "steps": steps,
    "crash": crash,
    "train": train,
}
if __name__ == "__main__":
    import signal

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    main()
