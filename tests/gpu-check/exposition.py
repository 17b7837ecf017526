"""The text format of Prometheus, and the file sink's OTLP/JSON lines."""

import json
import re

SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Page:
    """The samples of one scrape."""

    def __init__(self, text):
        self.samples = []
        for line in text.splitlines():
            if line and not line.startswith("#") and (match := SAMPLE.match(line)):
                name, labels, value = match.groups()
                self.samples.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def all(self, name, **labels):
        """Labels and values of the series with this name and these labels."""
        wanted = labels.items()
        return [(own, value) for found, own, value in self.samples if found == name and wanted <= own.items()]

    def one(self, name, **labels):
        """The value of the one series, or `None`."""
        found = self.all(name, **labels)
        return found[0][1] if len(found) == 1 else None

    def sum(self, name, **labels):
        return sum(value for _, value in self.all(name, **labels))


class Point:
    """A data point or a log record of an OTLP file."""

    def __init__(self, name, point):
        self.name = name
        self.attributes = {one["key"]: value_of(one["value"]) for one in point.get("attributes", [])}
        value = point.get("asDouble", point.get("asInt"))
        # OTLP/JSON writes NaN and the infinities as text.
        self.value = None if value is None or point.get("flags") == 1 else float(value)
        self.seconds = int(point.get("timeUnixNano", 0)) / 1e9
        self.start = int(point.get("startTimeUnixNano", 0)) / 1e9
        self.ends = point.get("flags") == 1

    def has(self, **attributes):
        return all(str(self.attributes.get(key.replace("__", "."))) == str(value) for key, value in attributes.items())


def value_of(value):
    return next(iter(value.values()), None)


def messages(path):
    """The complete messages of an OTLP/JSON file."""
    with open(path) as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def points(path):
    """All data points and log records of an OTLP/JSON file."""
    found = []
    for message in messages(path):
        for resource in message.get("resourceMetrics", []):
            for scope in resource.get("scopeMetrics", []):
                for metric in scope.get("metrics", []):
                    for kind in ("gauge", "sum", "histogram"):
                        found += [Point(metric["name"], one) for one in metric.get(kind, {}).get("dataPoints", [])]
        for resource in message.get("resourceLogs", []):
            for scope in resource.get("scopeLogs", []):
                found += [Point(one.get("eventName", ""), one) for one in scope.get("logRecords", [])]
    return found


def spans(path):
    """The attributes of all spans of an OTLP/JSON file, by name."""
    for message in messages(path):
        for resource in message.get("resourceSpans", []):
            for scope in resource.get("scopeSpans", []):
                for span in scope.get("spans", []):
                    yield span["name"], {one["key"]: value_of(one["value"]) for one in span.get("attributes", [])}
