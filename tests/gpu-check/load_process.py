"""A program that loads a GPU, seen from outside: JSON lines on its standard output."""

import json
import os
import subprocess
import threading
import time


class Load:
    """A load. It prints `{"ready": true}` when the GPU works, and its figures at its end."""

    def __init__(self, command, environment, folder):
        self.folder, self.lines, self.ended = folder, [], threading.Event()
        self.errors = open(os.path.join(folder, "errors.txt"), "w")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
        )
        self.ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with open(os.path.join(self.folder, "output.jsonl"), "w") as kept:
            for line in self.process.stdout:
                kept.write(line)
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                self.lines.append(message)
                if message.get("ready"):
                    self.ready.set()
        self.ended.set()

    def wait_ready(self, timeout=120):
        deadline = time.time() + timeout
        while not self.ready.wait(0.05):
            if self.ended.is_set():
                raise RuntimeError(f"the load ended before it was ready; see {self.folder}/errors.txt")
            if time.time() > deadline:
                raise RuntimeError(f"the load is not ready after {timeout} s; see {self.folder}")
        return self

    def wait(self, timeout=1200):
        """Waits for the end; returns the figures, which the last line has."""
        code = self.process.wait(timeout)
        self.ended.wait(10)
        if code or not self.lines:
            raise RuntimeError(f"the load ended with {code}; see {self.folder}/errors.txt")
        return self.lines[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
