"""The scenario of a fake driver, read without the driver: the file `layers.json` in the folder of the library and its `clock`.

It shares no code with the library. `scenarios/README.md` describes both files.
"""

import copy
import json
import math
import os
import struct
import time

FOLDER = os.environ.get("FAKE_NVML_FOLDER", ".")
SHAPES = {"ramp", "sine", "steps", "counter"}


def merged(low, high):
    """A merge patch in which a function of time replaces one of another shape."""
    if not isinstance(high, dict):
        return copy.deepcopy(high)
    shape = lambda value: next(iter(value)) if isinstance(value, dict) and len(value) == 1 and SHAPES & value.keys() else None
    if not isinstance(low, dict) or (shape(low) and shape(high) and shape(low) != shape(high)):
        low = {}
    return {**low, **{key: merged(low.get(key), value) for key, value in high.items()}}


def load():
    """The merged scenario."""
    with open(os.path.join(FOLDER, "layers.json")) as file:
        layers = json.load(file)
    scenario = {}
    for layer in layers:
        scenario = merged(scenario, layer)
    return scenario


def second():
    """The second of the scenario now."""
    with open(os.path.join(FOLDER, "clock"), "rb") as file:
        at, rate, anchor, _, _ = struct.unpack("<ddQQQ", file.read(40))
    return at + rate * (time.time_ns() - anchor) / 1e9


def jump(to):
    """Lets the scenario continue from a second."""
    epoch = time.time_ns() - int(to * 1e9)
    words = [*struct.unpack("<QQ", struct.pack("<dd", to, 1.0)), time.time_ns(), epoch]
    check = words[0] ^ words[1] ^ words[2] ^ words[3]
    with open(os.path.join(FOLDER, "clock"), "r+b") as file:
        file.write(struct.pack("<QQQQQ", *words, check))


def area(function, end):
    """The integral of a function from zero to a second."""
    if isinstance(function, (int, float)):
        return function * end
    shape, given = next(iter(function.items()))
    if shape == "steps":
        total, since, value = 0.0, 0.0, given[0][1]
        for begin, next_value in given:
            if 0 < begin < end:
                total, since = total + value * (begin - since), begin
            if begin < end:
                value = next_value
        return total + value * (end - since)
    if shape == "sine":
        period = given["period"]
        return given["mean"] * end + given["amplitude"] * period / math.tau * (1 - math.cos(math.tau * end / period))
    if shape == "ramp":
        rising = min(max(end, 0), given["over"])
        return given["from"] * rising + (given["to"] - given["from"]) * rising**2 / (2 * given["over"]) + given["to"] * (end - rising)
    return area(given["rate"], end)


def value(function, at):
    """A function at a second."""
    if isinstance(function, (int, float)):
        return function
    shape, given = next(iter(function.items()))
    if shape == "steps":
        return [level for begin, level in given if begin <= at or begin == given[0][0]][-1]
    if shape == "sine":
        return given["mean"] + given["amplitude"] * math.sin(math.tau * at / given["period"])
    if shape == "ramp":
        return given["from"] + (given["to"] - given["from"]) * min(max(at / given["over"], 0), 1)
    return given.get("start", 0) + area(given["rate"], at)


class Gpu:
    """One GPU of the scenario, as it is at a second."""

    def __init__(self, scenario, place, at=None):
        own = scenario["gpus"].get("each", {}).get(str(place), {})
        self.content = merged(scenario["gpus"]["all"], own)
        self.place, self.at = place, second() if at is None else at
        self.readings = self.content.get("readings", {})

    def fact(self, name):
        text = self.content.get("facts", {}).get(name)
        return text and text.replace("{place}", str(self.place)).replace("{place:02x}", f"{self.place:02x}")

    def function(self, name):
        """The function of a reading, with the readings that it names resolved; `None` without one."""
        function = self.readings.get(name)
        while isinstance(function, str):
            function = self.readings.get(function)
        if isinstance(function, dict) and isinstance(function.get("counter"), dict):
            function = copy.deepcopy(function)
            while isinstance(function["counter"].get("rate"), str):
                function["counter"]["rate"] = self.readings[function["counter"]["rate"]]
        return function

    def read(self, name):
        function = self.function(name)
        return None if function is None else value(function, self.at)

    def part(self, kind, number, name):
        """The reading of one part of many."""
        own = self.read(f"{kind}.{number}.{name}")
        return self.read(f"{kind}.{name}") if own is None else own

    def processes(self):
        """The processes that run: their number and their entry."""
        for process in self.content.get("processes", []):
            pid = process.get("pid")
            if "pid_file" in process:
                try:
                    with open(os.path.join(FOLDER, process["pid_file"])) as file:
                        pid = int(file.read() or 0)
                except OSError:
                    continue
            if pid and process.get("from", 0) <= self.at < process.get("until", math.inf):
                yield pid, process


def gpus(scenario, at=None):
    return [Gpu(scenario, place, at) for place in range(scenario["gpus"]["count"])]
