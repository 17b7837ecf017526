"""Sends one span by the OpenTelemetry SDK's OTLP exporter, which reads everything else from the OTEL_EXPORTER_OTLP_*
variables. Exits with 1 where the export fails, and its reason is on standard error.

usage: send.py grpc|http
"""

import logging
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult, SimpleSpanProcessor

if sys.argv[1] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

logging.basicConfig(level=logging.INFO)


class Watched(SpanExporter):
    """Remembers the outcome of the exporter behind it."""

    def __init__(self):
        # gRPC makes the path of a Unix socket the authority of its requests, which HTTP servers in Rust and Go refuse.
        options = {"channel_options": (("grpc.default_authority", "localhost"),)} if sys.argv[1] == "grpc" else {}
        self.exporter = OTLPSpanExporter(**options)
        self.results = []

    def export(self, spans):
        self.results.append(self.exporter.export(spans))
        return self.results[-1]

    def shutdown(self):
        self.exporter.shutdown()


exporter = Watched()
tracing = TracerProvider()
tracing.add_span_processor(SimpleSpanProcessor(exporter))
with tracing.get_tracer("app").start_as_current_span("load weights"):
    pass
tracing.shutdown()
sys.exit(0 if exporter.results == [SpanExportResult.SUCCESS] else 1)
