"""Writes `restart.jsonl` with Google's own recorder, and `restart.json` with Google's own calculator.

    venv/bin/python google.py

`library.py` has what to install. Times are given, so the files are the same each time.
"""

from datetime import datetime, timezone

import library

START = 1795226400.0


def at(seconds):
    return datetime.fromtimestamp(START + seconds, timezone.utc)


def job():
    """A job of 32 steps that is killed once, after step 19, and restarts from the checkpoint of step 15."""
    logger = library.MemoryLogger()
    recorder = library.goodput.GoodputRecorder("demo", "goodput_demo", True, cloud_logger=logger)

    def start(now, first):
        recorder.record_job_start_time(at(now))
        recorder.record_tpu_init_start_time(at(now + 0.5))
        recorder.record_tpu_init_end_time(at(now + 8.5))
        recorder.record_training_preparation_start_time(at(now + 9.0))
        recorder.record_training_preparation_end_time(at(now + 21.0))
        recorder.record_data_loading_start_time(at(now + 21.0))
        recorder.record_data_loading_end_time(at(now + 24.0))
        return steps(now + 24.0, first, 20 if first == 0 else 32)

    def steps(now, first, last):
        for step in range(first, last):
            recorder.record_step_start_time(step, at(now))
            now += 14.0 if step == first else 2.0
            if step == 9:
                recorder.record_custom_badput_event_start_time(at(now), "eval_step")
                now += 5.0
                recorder.record_custom_badput_event_end_time(at(now), "eval_step")
        return now

    now = start(0.0, 0)
    now = start(now + 40.0, 16)
    recorder.record_job_end_time(at(now))
    return logger, now


logger, seconds = job()
library.write("restart", logger, START, START + seconds)
