"""Experiment 6: joules of steps against windows that the trainer itself measured."""

import json
import os

import exposition
from experiment import experiment, holds, measured, within

DEFAULT_PERIOD = 0.1


@experiment(6, "Energy of steps", "load", "nvml")
def steps(context):
    for interval in ("1s", "200ms", "100ms"):
        yield from compare(context, interval)


def compare(context, interval):
    folder = context.folder(f"interval-{interval}")
    config, out, windows = (os.path.join(folder, name) for name in ("run.yaml", "out.jsonl", "windows.jsonl"))
    with open(config, "w") as file:
        json.dump({"gpu": {"interval": interval, **context.library_setting()}}, file)
    count = context.count(200, 20)
    options = {"count": count, "windows": windows}
    if context.library:
        options["library"] = context.library
    command = [context.pulsetrain, "run", "--run-id", "gpu-check", "--drain", "10", "--config", config, "--to", out]
    environment = {"CUDA_VISIBLE_DEVICES": str(context.gpu), **context.load_environment()}
    # The trainer sees one GPU, whose number is 0 for CUDA.
    words = ["env", *(f"{name}={environment[name]}" for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONPATH"))]
    context.run([*words, *command, "--", *context.load_command("steps", **options)], label=f"run-{interval}", timeout=3600)
    with open(windows) as file:
        references = {one["step"]: one for one in map(json.loads, file)}
    found = {}
    for _, attributes in exposition.spans(out):
        if "train.step" in attributes:
            found[int(attributes["train.step"])] = attributes
    yield measured(f"{interval}: attributions", sorted({str(one.get("gpu.step.attribution")) for one in found.values()}))
    has_joules = lambda one: one.get("gpu.step.energy_status") in ("complete", "coarse") and one.get("gpu.step.attribution") == "rank"
    found = {step: one for step, one in found.items() if has_joules(one)}
    matched = sorted(found.keys() & references.keys())
    # The first steps may begin before the GPU is read, the last end after it was read last.
    yield holds(f"{interval}: steps with joules of this rank", len(matched), f"at least {count - 4} of {count}", len(matched) >= count - 4)
    if not matched:
        return
    yield measured(f"{interval}: reference", references[matched[0]]["method"])
    ours = {step: float(found[step]["gpu.step.energy"]) for step in matched}
    bounds = {step: float(found[step]["gpu.step.energy_error"]) for step in matched}
    outside = 0
    for step in matched:
        reference = references[step]
        watts = reference["joules"] / (reference["end"] - reference["begin"])
        # A read at a border is late by up to the period of the counter, at both ends.
        slack = 2 * watts * DEFAULT_PERIOD
        outside += abs(ours[step] - reference["joules"]) > bounds[step] + slack
    yield holds(f"{interval}: steps outside of the bound", outside, f"at most 1 % of {len(matched)}", outside <= max(len(matched) // 100, 0))
    total = sum(references[step]["joules"] for step in matched)
    # The windows of the reference are off by a period at the ends of the run.
    seconds = references[matched[-1]]["end"] - references[matched[0]]["begin"]
    yield within(f"{interval}: sum of {len(matched)} steps, J", sum(ours.values()), total, relative=0.01 + 2 * DEFAULT_PERIOD / seconds)
    shares = sorted(bounds[step] / ours[step] for step in matched)
    yield measured(f"{interval}: median bound as a share of the step", f"{shares[len(shares) // 2]:.1%}")
