"""Writes `maxtext.jsonl`, what Google's recorder writes in the job of `tests/corpus/maxtext/demo.stderr`, and `maxtext.json` with
Google's own calculator.

    venv/bin/python maxtext.py

`library.py` has what to install. The recorded job had the recorder off, but its log has what the recorder would have been told: MaxText
prints step N after the end of step N + 1 (`src/maxtext/common/metric_logger.py` keeps the metrics of one step), so step N + 2 begins
with the line of step N. The first two steps begin by the seconds that their lines have.
"""

import re
from datetime import datetime, timedelta, timezone

import library

LOG = library.HERE.parent / "corpus" / "maxtext" / "demo.stderr"
# absl prints no year; that of the first line of the log, which is of XLA and has seconds since 1970.
YEAR = 2026
TIME = re.compile(r"^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) ")
STEP = re.compile(r"completed step: (\d+), seconds: ([0-9.]+)")


def time_of(line):
    found = TIME.match(line)
    return found and datetime.strptime(f"{YEAR}{found[1]}", "%Y%m%d %H:%M:%S.%f").replace(tzinfo=timezone.utc)


def main():
    lines = [(time_of(line), line) for line in LOG.read_text().splitlines()]
    lines = [(time, line) for time, line in lines if time]
    steps = [(time, STEP.search(line)) for time, line in lines]
    printed, seconds = zip(*[(time, float(found[2])) for time, found in steps if found])
    second = printed[0] - timedelta(seconds=seconds[1])
    starts = [second - timedelta(seconds=seconds[0]), second, *printed[:-2]]
    begin, end = lines[0][0], lines[-1][0]

    logger = library.MemoryLogger()
    recorder = library.goodput.GoodputRecorder("demo", "goodput_demo", True, cloud_logger=logger)
    recorder.record_job_start_time(begin)
    for step, start in enumerate(starts):
        recorder.record_step_start_time(step, start)
    recorder.record_job_end_time(end)
    library.write("maxtext", logger, begin.timestamp(), end.timestamp())


main()
