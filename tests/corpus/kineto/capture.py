"""Writes the capture of this folder: a PyTorch profile of a small training on the CPU, and OTLP spans of the same steps.

Run with torch 2.15 in an empty folder: python capture.py
"""

import json
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function

STEPS = 3


def span(name, number, start, end, trace="4f" * 16, **attributes):
    values = [{"key": key, "value": {"intValue": str(value)}} for key, value in attributes.items()]
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(end),
        "attributes": values,
    }


model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.set_num_threads(1)
spans = []
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    for step in range(STEPS):
        start = time.time_ns()
        with record_function(f"step {step}"):
            loss = model(torch.randn(8, 16)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        spans.append(span("train.step", step + 1, start, time.time_ns(), **{"train.step": step}))
profiler.export_chrome_trace("run.pt.trace.json")
resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]}
message = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}
with open("run.otlp.jsonl", "w") as file:
    file.write(json.dumps(message) + "\n")
