"""Compares what Pulsetrain reports of the GPUs of this machine with what nvidia-smi, NVML and the programs on the GPU report.

`python3 tests/gpu-check --help` lists the options; GPU.md describes the experiments.
"""

import argparse
import importlib
import json
import os
import platform
import shlex
import shutil
import sys
import time

from context import Context
from experiment import EXPERIMENTS, FAILED, PASSED, SKIPPED, Skip
from table import format_table

MODULES = ["identity", "readings", "steps", "links", "activity", "processes", "access", "reset", "faults", "cost", "power"]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="gpu-check", description=__doc__.splitlines()[0])
    parser.add_argument("--pulsetrain", default=shutil.which("pulsetrain"), help="the program; by default as PATH has it")
    parser.add_argument("--corpus", default="gpu-check-corpus", help="the folder that keeps all outputs")
    parser.add_argument("--only", default="", help="numbers of experiments, as in 1,4,7-9")
    parser.add_argument("--gpu", type=int, default=0, help="the index of the GPU that is loaded")
    parser.add_argument("--library", help="NVML; by default libnvidia-ml.so.1 as the system finds it")
    parser.add_argument("--load", help="a program in the place of load.py, with its arguments and its output")
    parser.add_argument("--time-scale", type=float, default=1.0, help="scales the times of measurement; below 1 is weaker")
    parser.add_argument("--disruptive", action="store_true", help="also resets GPUs, sets limits and splits GPUs; needs root")
    parser.add_argument("--list", action="store_true", help="lists the experiments")
    arguments = parser.parse_args()
    for module in MODULES:
        importlib.import_module(module)
    if arguments.list:
        for experiment in sorted(EXPERIMENTS, key=lambda one: one.number):
            print(f"{experiment.number:>2}  {experiment.title}")
        sys.exit(0)
    if not arguments.pulsetrain or not shutil.which(arguments.pulsetrain):
        parser.error("pulsetrain is not in PATH; give its path with --pulsetrain")
    try:
        arguments.only = numbers(arguments.only)
    except ValueError:
        parser.error(f"--only {arguments.only}: expected numbers, as in 1,4,7-9")
    unknown = arguments.only - {experiment.number for experiment in EXPERIMENTS}
    if unknown:
        parser.error(f"--only: there is no experiment {min(unknown)}")
    return arguments


def numbers(text):
    """The numbers of `1,4,7-9`."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def run(experiment, context):
    """Runs one experiment; returns its rows."""
    context.begin(experiment)
    try:
        experiment.require(context)
        for row in experiment.function(context):
            context.rows.append(row)
            print(f"    {row.verdict}: {row.what}: {row.ours} against {row.reference}", file=sys.stderr)
    except Skip as skip:
        context.skip(str(skip))
    except Exception as error:  # One experiment that breaks leaves the others running.
        context.fail(f"{type(error).__name__}: {error}")
    finally:
        context.end()
    return context.rows


def main():
    arguments = parse_arguments()
    os.makedirs(arguments.corpus, exist_ok=True)
    context = Context(arguments)
    context.write_machine({"argv": shlex.join(sys.argv), "time": time.time(), "platform": platform.platform()})
    results = []
    for experiment in sorted(EXPERIMENTS, key=lambda one: one.number):
        if arguments.only and experiment.number not in arguments.only:
            continue
        print(f"{experiment.number:>2}  {experiment.title}", file=sys.stderr)
        results += [(experiment, row) for row in run(experiment, context)]
    table = format_table(results)
    print(table)
    with open(os.path.join(arguments.corpus, "table.txt"), "w") as file:
        file.write(table + "\n")
    with open(os.path.join(arguments.corpus, "results.json"), "w") as file:
        json.dump([row.as_dict(experiment) for experiment, row in results], file, indent=1)
    counts = {verdict: sum(row.verdict == verdict for _, row in results) for verdict in (PASSED, FAILED, SKIPPED)}
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + f"; outputs are in {arguments.corpus}")
    sys.exit(1 if counts[FAILED] else 0)


main()
