"""NVML by ctypes: the counters that nvidia-smi does not print."""

import ctypes
import time


class FieldValue(ctypes.Structure):
    """`nvmlFieldValue_t`."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


class Memory(ctypes.Structure):
    """`nvmlMemory_t`."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NvmlError(Exception):
    """A return code that is not success."""


ENERGY, LINK_STATE = 83, 165


class Nvml:
    def __init__(self, library):
        self.library = ctypes.CDLL(library or "libnvidia-ml.so.1")
        self.call("nvmlInit_v2")

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise NvmlError(f"{name} returned {code}")

    def device(self, index):
        device = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        return device

    def count(self):
        count = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def field(self, device, field, scope=0):
        """A field's value; raises where the GPU has none."""
        cell = FieldValue(field=field, scope=scope)
        self.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(1), ctypes.byref(cell))
        if cell.code:
            raise NvmlError(f"field {field} returned {cell.code}")
        return cell

    def energy(self, device):
        """Joules since the driver was loaded."""
        value = ctypes.c_ulonglong()
        self.call("nvmlDeviceGetTotalEnergyConsumption", device, ctypes.byref(value))
        return value.value / 1000

    def mig_devices(self, device):
        """Handle and ids of the instances of a GPU."""
        most, found = ctypes.c_uint(), []
        self.call("nvmlDeviceGetMaxMigDeviceCount", device, ctypes.byref(most))
        for slot in range(most.value):
            instance, ids = ctypes.c_void_p(), [ctypes.c_uint(), ctypes.c_uint()]
            try:
                self.call("nvmlDeviceGetMigDeviceHandleByIndex", device, ctypes.c_uint(slot), ctypes.byref(instance))
            except NvmlError:
                continue
            self.call("nvmlDeviceGetGpuInstanceId", instance, ctypes.byref(ids[0]))
            self.call("nvmlDeviceGetComputeInstanceId", instance, ctypes.byref(ids[1]))
            found.append((instance, ids[0].value, ids[1].value))
        return found

    def memory(self, device):
        memory = Memory()
        self.call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        return memory

    def watch_energy(self, device, seconds):
        """Reads the energy field in a loop: times of reading, values in joules, stamps and the driver's latencies."""
        seen, end = [], time.time() + seconds
        while time.time() < end:
            cell = self.field(device, ENERGY)
            seen.append((time.time(), cell.value / 1000, cell.timestamp / 1e6, cell.latency))
        return seen
