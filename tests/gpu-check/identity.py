"""Experiments 1 and 2: which GPUs there are, and what each of them does not have."""

import json
import re

import nvidia_smi
from agent import Agent
from experiment import Skip, equal, experiment, holds

FIELDS = ["index", "uuid", "pci.bus_id", "serial", "vbios_version", "driver_version", "name"]
LABELS = ["gpu_index", "gpu_id", "gpu_pci_address", "gpu_serial_number", "gpu_vbios_version", "gpu_driver_version", "gpu_name"]

# A field of nvidia-smi, and the series that has its value.
SAME = [
    ("temperature.gpu", "gpu_temperature_celsius", {"gpu_temperature_sensor": "gpu"}),
    ("temperature.memory", "gpu_temperature_celsius", {"gpu_temperature_sensor": "memory"}),
    ("fan.speed", "gpu_fan_speed_ratio", {}),
    ("utilization.gpu", "gpu_utilization_ratio", {"gpu_task": "general"}),
    ("utilization.memory", "gpu_memory_activity_ratio", {}),
    ("utilization.encoder", "gpu_utilization_ratio", {"gpu_task": "encoder"}),
    ("utilization.decoder", "gpu_utilization_ratio", {"gpu_task": "decoder"}),
    ("utilization.jpeg", "gpu_utilization_ratio", {"gpu_task": "jpeg"}),
    ("utilization.ofa", "gpu_utilization_ratio", {"gpu_task": "ofa"}),
    ("memory.used", "gpu_memory_used_bytes", {}),
    ("power.draw.average", "gpu_average_power_watts", {}),
    ("power.draw.instant", "gpu_power_watts", {"gpu_power_reading": "instant"}),
    ("enforced.power.limit", "gpu_power_limit_watts", {"gpu_power_limit_kind": "enforced"}),
    ("module.power.draw.instant", "gpu_module_power_watts", {"gpu_power_reading": "instant"}),
    ("clocks.sm", "gpu_clock_frequency_hertz", {"gpu_clock_domain": "sm"}),
    ("clocks.applications.graphics", "gpu_clock_limit_hertz", {"gpu_clock_domain": "graphics", "gpu_clock_limit_kind": "application"}),
    ("pstate", "gpu_performance_state", {}),
    ("ecc.errors.corrected.volatile.total", "gpu_ecc_errors_total", {"gpu_ecc_severity": "corrected"}),
    ("pcie.link.gen.current", "gpu_pcie_generation", {"gpu_link_reading": "current"}),
    ("retired_pages.sbe", "gpu_retired_pages_total", {}),
]


@experiment(1, "Every GPU with its identity", "nvidia-smi")
def identity(context):
    expected = nvidia_smi.query(context, FIELDS)
    with Agent(context) as agent:
        page = agent.wait_ready()
    infos = {labels["gpu_index"]: labels for labels, _ in page.all("gpu_info") if "gpu_mig_instance_id" not in labels}
    yield equal("GPUs", len(infos), len(expected))
    for row in expected:
        ours = infos.get(row[0], {})
        for field, label, reference in list(zip(FIELDS, LABELS, row))[1:]:
            if nvidia_smi.is_absent(reference):
                continue
            yield equal(f"GPU {row[0]} {field}", address(ours.get(label, "absent")), address(reference))


def address(text):
    """A PCI address in one form: the kernel writes 4 digits for the domain, NVML 8."""
    return re.sub(r"^0000(?=[0-9a-f]{4}:)", "", text.lower()) if re.match(r"^[0-9A-Fa-f]{4,8}:", text) else text


@experiment(2, "What a GPU does not have", "nvidia-smi")
def absent(context):
    known = [one for one in SAME if nvidia_smi.has_field(context, one[0])]
    if not known:
        raise Skip("this nvidia-smi knows none of the fields")
    expected = nvidia_smi.query(context, [field for field, _, _ in known])
    with Agent(context) as agent:
        page = agent.wait_ready()
        config = agent.config
    for index, row in enumerate(expected):
        for (field, name, labels), text in zip(known, row):
            there = bool(page.all(name, gpu_index=str(index), **labels))
            if nvidia_smi.is_absent(text) == there:
                ours = "a value" if there else "no value"
                yield holds(f"GPU {index} {name} {' '.join(labels.values())}", ours, f"{field} is {text}", False)
        same = sum(nvidia_smi.is_absent(text) != bool(page.all(name, gpu_index=str(index), **labels))
                   for (_, name, labels), text in zip(known, row))
        yield equal(f"GPU {index}: fields that both have or both lack", same, len(known))
    yield equal("metrics that an error of the driver takes", reasons(page, "driver_error"), [])
    _, output = context.try_run([context.pulsetrain, "doctor", "--config", config, "--json"], label="doctor")
    lines = [one["what"] for one in json.loads(output[output.index("{"):])["findings"] if one["place"].startswith("GPU ")]
    wrong = [what for what in lines if re.search(r"does not have .*\bgpu\.(power|energy|temperature)\b", what)]
    has_power = not nvidia_smi.is_absent(nvidia_smi.query(context, ["power.draw.instant"], 0)[0][0])
    yield holds("doctor: findings that deny power, energy or temperature", len(wrong), "0 where nvidia-smi has them", not (wrong and has_power))


def reasons(page, reason):
    return sorted({labels["gpu_metric_name"] for labels, _ in page.all("gpu_metric_unavailable", gpu_unavailable_reason=reason)})
