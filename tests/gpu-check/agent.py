"""A running `pulsetrain agent` with a page, a file of all points, and an address for requests."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import exposition


class Agent:
    def __init__(self, context, name="agent", gpu=None, wrapper=(), log=None):
        self.context, self.folder = context, context.folder(name)
        self.file = os.path.join(self.folder, "points.jsonl")
        self.ports = [free_port(), free_port()]
        settings = {"interval": "1s", **context.library_setting(), **(gpu or {})}
        config = {
            "state_folder": os.path.join(self.folder, "state"),
            "gpu": settings,
            "sinks": {
                "page": {"prometheus": {"listen": f"127.0.0.1:{self.ports[0]}"}},
                "points": {"file": {"path": self.file}},
            },
            "health": {"listen": f"127.0.0.1:{self.ports[1]}"},
        }
        if log:
            config["sources"] = {"steps": {"logs": {"paths": [log]}}}
        self.config = os.path.join(self.folder, "agent.yaml")
        with open(self.config, "w") as file:
            json.dump(config, file, indent=1)  # JSON is YAML.
        self.log_file = open(os.path.join(self.folder, "log.txt"), "w+")
        command = [*wrapper, context.pulsetrain, "agent", "--config", self.config]
        self.process = subprocess.Popen(command, stdout=self.log_file, stderr=subprocess.STDOUT, start_new_session=True)
        self.began = time.time()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def fetch(self):
        """The page now; `None` while nothing answers."""
        try:
            url = f"http://127.0.0.1:{self.ports[0]}/metrics"
            request = urllib.request.Request(url, headers={"Accept": "text/plain"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, OSError):
            return None

    def page(self, label="page"):
        """The page now, which the corpus keeps."""
        text = self.fetch()
        if text is None:
            raise RuntimeError(f"the page does not answer; see {self.folder}/log.txt")
        self.context.keep(f"{label}.prom", text)
        return exposition.Page(text)

    def wait(self, condition, timeout, what):
        """Waits until the condition holds for the page; returns the page."""
        deadline = time.time() + timeout
        while time.time() < deadline:
            text = self.fetch()
            if text is not None and condition(page := exposition.Page(text)):
                self.context.keep("page.prom", text)
                return page
            if self.process.poll() is not None:
                raise RuntimeError(f"the agent ended with {self.process.returncode}; see {self.folder}/log.txt")
            time.sleep(0.1)
        raise RuntimeError(f"no {what} within {timeout:.0f} s; see {self.folder}")

    def wait_ready(self, timeout=60):
        """Waits for the values of every GPU, performance counters included where there are some."""
        self.wait(lambda page: page.all("gpu_info"), timeout, "GPU on the page")
        # The performance counters need two passes.
        time.sleep(2.5)
        return self.page()

    def points(self, name=None, **attributes):
        if not os.path.exists(self.file):
            return []
        return [one for one in exposition.points(self.file) if name in (None, one.name) and one.has(**attributes)]

    def post(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[1]}{path}", data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()

    def log(self):
        with open(self.log_file.name) as file:
            return file.read()

    def pid(self):
        """The process of the agent itself, below a wrapper."""
        pattern = re.compile(re.escape(self.config))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline") as file:
                    words = file.read().split("\0")
            except OSError:
                continue
            if words[0].endswith("pulsetrain") and any(map(pattern.fullmatch, words)):
                return int(pid)
        return self.process.pid

    def stop(self, timeout=20):
        """Ends the agent; returns the seconds that this took, or `None` if it had to be killed."""
        began = time.time()
        try:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(timeout)
            return time.time() - began
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
