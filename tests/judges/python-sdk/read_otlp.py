"""Reads an OTLP file with the OpenTelemetry SDK's protobuf classes and prints each message as OTLP/JSON on a line.

A file that ends in .binpb is 4-byte big-endian lengths with protobuf messages; any other is JSON lines. Strict: an
unknown field, a wrong type or a torn frame ends it with an error.
"""

import base64
import json
import struct
import sys

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

KINDS = {"resourceSpans": TracesData, "resourceMetrics": MetricsData, "resourceLogs": LogsData}
IDS = {"traceId", "spanId", "parentSpanId"}


def main(path):
    messages = read_frames(path) if path.endswith(".binpb") else read_lines(path)
    for message in messages:
        fields = json_format.MessageToDict(message, use_integers_for_enums=True)
        print(json.dumps(respell_ids(fields, lambda text: base64.b64decode(text).hex())))


def read_lines(path):
    with open(path, encoding="utf-8") as lines:
        for line in filter(str.strip, lines):
            fields = json.loads(line)
            (kind,) = fields
            # OTLP/JSON spells ids in hex where protobuf's own JSON has base64.
            fields = respell_ids(fields, lambda text: base64.b64encode(bytes.fromhex(text)).decode())
            yield json_format.ParseDict(fields, KINDS[kind]())


def read_frames(path):
    with open(path, "rb") as frames:
        while header := frames.read(4):
            (length,) = struct.unpack(">I", header)
            body = frames.read(length)
            if len(body) != length:
                sys.exit(f"{path}: a frame of {length} bytes has only {len(body)}")
            yield parse_any(body)


def parse_any(body):
    """A frame does not say its signal, and one signal's bytes may parse as another's: only one fits without a rest."""
    fitting = []
    for kind in KINDS.values():
        message = kind()
        try:
            message.ParseFromString(body)
        except DecodeError:
            continue
        if not has_unknown(message):
            fitting.append(message)
    if len(fitting) != 1:
        sys.exit(f"a frame fits {len(fitting)} signals")
    return fitting[0]


def has_unknown(message):
    if len(UnknownFieldSet(message)) > 0:
        return True
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if any(has_unknown(part) for part in (value if field.is_repeated else [value])):
            return True
    return False


def respell_ids(value, spell):
    if isinstance(value, list):
        return [respell_ids(element, spell) for element in value]
    if isinstance(value, dict):
        return {
            key: spell(part) if key in IDS else respell_ids(part, spell) for key, part in value.items()
        }
    return value


main(sys.argv[1])
