"""Loads a GPU with torch: `python3 -m load MODE OPTIONS`. Its output is JSON lines."""

import argparse
import datetime
import json
import os
import sys
import time

# Dense peaks in FLOP/s by a part of the name and the type (data sheets of NVIDIA); tensor cores where the type has them.
PEAKS = {
    "H100 PCIe": {"bf16": 756e12, "fp32": 51e12, "fp64": 51e12},
    "H100": {"bf16": 989e12, "fp32": 67e12, "fp64": 67e12},
    "H200": {"bf16": 989e12, "fp32": 67e12, "fp64": 67e12},
    "GH200": {"bf16": 989e12, "fp32": 67e12, "fp64": 67e12},
    "B200": {"bf16": 2250e12, "fp32": 75e12, "fp64": 37e12},
    "A100": {"bf16": 312e12, "fp32": 19.5e12, "fp64": 19.5e12},
    "L40S": {"bf16": 362e12, "fp32": 91.6e12, "fp64": 1.4e12},
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=sorted(MODES))
    parser.add_argument("--gpu", type=int, default=0)
    parser.add_argument("--to", type=int, default=1)
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--type", default="bf16")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--work", type=float, default=0.35)
    parser.add_argument("--sleep", type=float, default=0.15)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--windows")
    parser.add_argument("--library")
    parser.add_argument("--direction", default="h2d")
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--rate", type=float, default=0, help="GB/s; 0 is as fast as it goes")
    options = parser.parse_args()
    MODES[options.mode](options)


def write(**message):
    print(json.dumps(message), flush=True)


def device_of(options):
    import torch

    torch.cuda.set_device(options.gpu)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch


def matrices(torch, options):
    types = {"bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
    make = lambda: torch.randn(options.size, options.size, device="cuda", dtype=types[options.type])
    return make(), make(), make()


def multiply_for(torch, pair, seconds):
    """Multiplies for a time; returns the number of products. The host never runs far ahead."""
    a, b, out = pair
    end, count = time.time() + seconds, 0
    while time.time() < end:
        for _ in range(4):
            torch.matmul(a, b, out=out)
        torch.cuda.synchronize()
        count += 4
    return count


def matmul(options):
    torch = device_of(options)
    pair = matrices(torch, options)
    multiply_for(torch, pair, 1)
    write(ready=True)
    begin = time.time()
    count = multiply_for(torch, pair, options.seconds)
    end = time.time()
    name = torch.cuda.get_device_name()
    peaks = next((peaks for part, peaks in PEAKS.items() if part in name), {})
    flops = count * 2 * options.size**3 / (end - begin)
    write(begin=begin, end=end, flops_per_second=flops, peak=peaks.get(options.type))


def energy_reader(options):
    """Reads the joules of the GPU: with Zeus where it is installed, else as Zeus does."""
    try:
        from zeus.monitor import ZeusMonitor

        monitor = ZeusMonitor(gpu_indices=[options.gpu])
        begin = lambda: monitor.begin_window("step")
        return begin, lambda: sum(monitor.end_window("step").gpu_energy.values()), "ZeusMonitor"
    except ImportError:
        from nvml import Nvml

        nvml = Nvml(options.library)
        device, last = nvml.device(options.gpu), []
        return lambda: last.append(nvml.energy(device)), lambda: nvml.energy(device) - last[-1], "NVML, read at both borders"


def steps(options, work=None):
    if work is None:
        torch = device_of(options)
        pair = matrices(torch, options)
        multiply_for(torch, pair, 1)
        work = lambda: multiply_for(torch, pair, options.work)
    begin_window, end_window, method = energy_reader(options)
    # The processes of a GPU are read every 5 s: from then on the steps are those of this process.
    time.sleep(7)
    with open(options.windows, "w") as windows:
        for step in range(options.count):
            begin_window()
            begin = time.time()
            work()
            time.sleep(options.sleep)
            end = time.time()
            joules = end_window()
            print(json.dumps({"step": step, "begin": begin, "end": end, "joules": joules, "method": method}), file=windows, flush=True)
            write(**step_record(step, begin, end))


def step_record(step, begin, end):
    """A step as Surogate logs it."""
    stamp = datetime.datetime.fromtimestamp(end, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    figures = {"epoch": 0.5, "step_tokens": 16384, "norm": 1.5, "loss": 2.5, "lr": 2e-05, "phase": "converging"}
    return {"log": "step", "time": stamp, "step": step, "duration_ms": round((end - begin) * 1000), **figures}


def copy(options):
    torch = device_of(options)
    size = 256 << 20
    host = torch.empty(size, dtype=torch.uint8).pin_memory()
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    to, source = (device, host) if options.direction == "h2d" else (host, device)
    move(torch, options, to, source, size)


def peer(options):
    torch = device_of(options)
    size = 1 << 30
    source = torch.empty(size, dtype=torch.uint8, device=f"cuda:{options.gpu}")
    to = torch.empty(size, dtype=torch.uint8, device=f"cuda:{options.to}")
    move(torch, options, to, source, size)


def move(torch, options, to, source, size):
    """Copies at the rate until the gigabytes are copied."""
    to.copy_(source)
    torch.cuda.synchronize()
    write(ready=True)
    begin, copied = time.time(), 0
    while copied < options.gigabytes * 1e9:
        to.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        copied += size
        if options.rate:
            time.sleep(max(begin + copied / (options.rate * 1e9) - time.time(), 0))
    write(begin=begin, end=time.time(), bytes=copied)


def hold(options):
    torch = device_of(options)
    kept = torch.zeros(int(options.gigabytes * 1e9), dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    write(ready=True, pid=os.getpid())
    time.sleep(options.seconds)
    write(bytes=kept.numel())


def crash(options):
    """Reads memory that is not the program's, which the driver reports as an XID error."""
    torch = device_of(options)
    index = torch.full((1024,), 1 << 40, dtype=torch.int64, device="cuda")
    write(ready=True, begin=time.time())
    try:
        torch.cuda._sleep(1000)
        torch.take(torch.zeros(16, device="cuda"), index)
        torch.cuda.synchronize()
    except RuntimeError as error:
        print(error, file=sys.stderr)
    write(end=time.time())
    os._exit(0)


def train(options):
    """Trains a small GPT; its figures are tokens a second and the 99th percentile of the steps."""
    torch = device_of(options)
    layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dtype=torch.bfloat16)
    model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    batch = torch.randn(8, 512, 1024, device="cuda", dtype=torch.bfloat16)
    times, begin = [], None
    for step in range(options.count + 20):
        if step == 20:
            write(ready=True)
            begin, times = time.time(), []
        before = time.time()
        optimizer.zero_grad()
        model(batch).float().square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(time.time() - before)
    end = time.time()
    write(begin=begin, end=end, tokens_per_second=len(times) * 8 * 512 / (end - begin), p99_step=sorted(times)[int(len(times) * 0.99)])


MODES = {
    "matmul": matmul,
    "steps": steps,
    "copy": copy,
    "peer": peer,
    "hold": hold,
    "crash": crash,
    "train": train,
}

if __name__ == "__main__":
    main()
