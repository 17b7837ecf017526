"""Google's ml-goodput-measurement with a list in memory in the place of Cloud Logging, which the library asks otherwise.

    python3 -m venv venv
    venv/bin/pip install --no-deps ml-goodput-measurement==0.2.3
    venv/bin/pip install numpy scipy requests
"""

import json
import pathlib
import sys
import tempfile
import types
import unittest.mock

for name in (
    "google", "google.cloud", "google.cloud.logging", "google.cloud.storage", "google.cloud.monitoring_v3",
    "google.api_core", "google.api_core.exceptions", "tensorboardX", "tensorboardX.writer",
):
    module = types.ModuleType(name)
    module.__getattr__ = lambda attribute: unittest.mock.MagicMock()
    sys.modules[name] = module

from ml_goodput_measurement.src import goodput  # noqa: E402

HERE = pathlib.Path(__file__).parent
LIBRARY = "ml-goodput-measurement 0.2.3"


class MemoryLogger:
    """The part of `_CloudLogger` that the recorder and the calculator use."""

    def __init__(self):
        self.entries = []
        self.job_start_time = None

    def write_cloud_logging_entry(self, entry):
        self.entries.append(entry)

    def read_cloud_logging_entries(self, *_args, **_kwargs):
        return list(self.entries), None

    def flush(self):
        pass

    def _update_job_start_time(self, _entries):
        pass


def write(name, logger, start, end):
    """Writes the entries of a recorder to `NAME.jsonl`, and the answers of the calculator to `NAME.json`."""
    with (HERE / f"{name}.jsonl").open("w") as file:
        for number, entry in enumerate(logger.entries):
            line = {"insertId": f"1x{number:04x}kq7f2", "jsonPayload": entry, "logName": "projects/a-project/logs/goodput_demo"}
            file.write(json.dumps(line, sort_keys=True) + "\n")
    with tempfile.TemporaryDirectory() as cache:
        calculator = goodput.GoodputCalculator("demo", "goodput_demo", cloud_logger=logger, cache_dir=cache)
        share, breakdown, last_step = calculator.get_job_goodput(include_badput_breakdown=True)
    seconds = end - start
    badput = {}
    for cause, percent in breakdown.items():
        if isinstance(percent, dict):
            badput |= {f"{cause.name.lower()}/{event.lower()}": value / 100 * seconds for event, value in percent.items()}
        else:
            badput[cause.name.lower()] = percent / 100 * seconds
    answers = {
        "library": LIBRARY,
        "job_seconds": seconds,
        "productive_seconds": share / 100 * seconds,
        "badput_seconds": badput,
        "last_step": last_step,
    }
    (HERE / f"{name}.json").write_text(json.dumps(answers, indent=2, sort_keys=True) + "\n")
