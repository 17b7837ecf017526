"""What experiments share: the options, the corpus folder, and the programs that they run."""

import json
import os
import shlex
import shutil
import subprocess
import sys

from experiment import FAILED, SKIPPED, Row
from load_process import Load
from nvml import Nvml

SHORTEST_SECONDS = 3


class Context:
    def __init__(self, arguments):
        self.arguments = arguments
        self.corpus = os.path.abspath(arguments.corpus)
        self.pulsetrain = os.path.abspath(shutil.which(arguments.pulsetrain))
        self.library = arguments.library and os.path.abspath(arguments.library)
        self.gpu = arguments.gpu
        self.rows, self._outputs, self._nvml, self._place = [], 0, None, self.corpus

    def begin(self, experiment):
        """Begins an experiment: its rows, and its folder in the corpus."""
        slug = "".join(letter if letter.isalnum() else "-" for letter in experiment.title.lower())
        self._place = os.path.join(self.corpus, f"{experiment.number:02}-{slug}")
        shutil.rmtree(self._place, ignore_errors=True)
        os.makedirs(self._place)
        self.rows, self._outputs = [], 0

    def end(self):
        self.keep("rows.json", json.dumps([row.__dict__ for row in self.rows], indent=1))

    def skip(self, reason):
        self._note(SKIPPED, reason)

    def fail(self, reason):
        self._note(FAILED, reason)

    def _note(self, verdict, reason):
        print(f"    {verdict}: {reason}", file=sys.stderr)
        self.rows.append(Row(reason, "", "", "", verdict))

    def lacks(self, need):
        """Why a need is not met; `None` if it is."""
        tests = {
            "nvidia-smi": (lambda: shutil.which("nvidia-smi"), "nvidia-smi is not in PATH"),
            "load": (self._has_load, "torch with CUDA is missing; install it, or give a program with --load"),
            "two GPUs": (lambda: self.nvml().count() > 1, "the machine has one GPU"),
            "nvml": (lambda: self.nvml(), "libnvidia-ml.so.1 cannot be loaded; give its path with --library"),
            "root": (lambda: os.geteuid() == 0, "it needs root"),
            "disruptive": (lambda: self.arguments.disruptive, "it changes the machine; give --disruptive"),
            "cc": (lambda: shutil.which("cc"), "no C compiler (cc) builds the faulty driver"),
        }
        is_met, reason = tests.get(need, (lambda: shutil.which(need), f"{need} is not in PATH"))
        try:
            return None if is_met() else reason
        except Exception as error:
            return f"{reason} ({error})"

    def _has_load(self):
        if self.arguments.load:
            return True
        check = "import torch, sys; sys.exit(not torch.cuda.is_available())"
        return subprocess.run([sys.executable, "-c", check], capture_output=True).returncode == 0

    def seconds(self, seconds):
        """A time of measurement, scaled."""
        return max(seconds * self.arguments.time_scale, min(seconds, SHORTEST_SECONDS))

    def count(self, count, least):
        """A number of repetitions, scaled."""
        return max(int(count * self.arguments.time_scale), least)

    def nvml(self):
        if self._nvml is None:
            self._nvml = Nvml(self.library)
        return self._nvml

    def close_nvml(self):
        """Lets go of the driver, which a client keeps in use."""
        if self._nvml is not None:
            self._nvml.call("nvmlShutdown")
            self._nvml = None

    def library_setting(self):
        return {"library": self.library} if self.library else {}

    def folder(self, name):
        """A new folder of this experiment in the corpus."""
        path, number = os.path.join(self._place, name), 1
        while os.path.exists(path):
            number += 1
            path = os.path.join(self._place, f"{name}-{number}")
        os.makedirs(path)
        return path

    def keep(self, name, text):
        """Keeps a text in the corpus."""
        with open(os.path.join(self._place, name), "w") as file:
            file.write(text)

    def run(self, command, label="output", timeout=600):
        """Runs a program that has to succeed; returns its output."""
        code, output = self.try_run(command, label, timeout)
        if code:
            raise RuntimeError(f"{shlex.join(command)} returned {code}: {output.strip()[-300:]}")
        return output

    def try_run(self, command, label="output", timeout=600):
        """Runs a program; returns its exit code and its output, which the corpus keeps."""
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
        self._outputs += 1
        head = f"$ {shlex.join(command)}\n# exit code {done.returncode}\n"
        self.keep(f"{self._outputs:04}-{label}.txt", head + done.stdout)
        return done.returncode, done.stdout

    def load_command(self, mode, **options):
        """The command of a load; `source_bytes=1` is the option `--source-bytes 1`."""
        base = shlex.split(self.arguments.load) if self.arguments.load else [sys.executable, "-m", "load"]
        options = {"gpu": self.gpu, **options}
        words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        return [*base, mode, *words]

    def load_environment(self):
        """Numbers GPUs for CUDA as NVML does."""
        path = os.pathsep.join(filter(None, [sys.path[0], os.environ.get("PYTHONPATH")]))
        return {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTHONPATH": path}

    def load(self, mode, environment=None, **options):
        """Starts a load."""
        folder = self.folder(f"load-{mode}")
        command = self.load_command(mode, **options)
        return Load(command, {**self.load_environment(), **(environment or {})}, folder)

    def write_machine(self, facts):
        """Describes the machine in the corpus."""
        with open(os.path.join(self.corpus, "machine.json"), "w") as file:
            json.dump(facts, file, indent=1)
        for name, command in [("nvidia-smi.txt", ["nvidia-smi", "-q"]), ("version.txt", [self.pulsetrain, "--version"])]:
            if shutil.which(command[0]):
                output = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
                with open(os.path.join(self.corpus, name), "w") as file:
                    file.write(output)
