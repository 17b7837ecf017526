"""Everything that the OpenTelemetry SDK for Python says of a small program, as length-prefixed OTLP: sdk_corpus.py OUT.binpb"""

import struct
import sys

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

resource = Resource.create({"service.name": "shop", "service.version": "1.2", "host.name": "web-1", "process.pid": 4711})
spans = InMemorySpanExporter()
tracers = TracerProvider(resource=resource)
tracers.add_span_processor(SimpleSpanProcessor(spans))
tracer = tracers.get_tracer("shop.web", "0.3", schema_url="https://opentelemetry.io/schemas/1.26.0", attributes={"edition": 2024})
reader = InMemoryMetricReader()
exponential = View(instrument_name="shop.size", aggregation=ExponentialBucketHistogramAggregation(max_size=8))
meters = MeterProvider(resource=resource, metric_readers=[reader], views=[exponential])
meter = meters.get_meter("shop.meter", "0.3")
logs = InMemoryLogRecordExporter()
loggers = LoggerProvider(resource=resource)
loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
logger = loggers.get_logger("shop.log")

orders = meter.create_counter("shop.orders", unit="{order}", description="Orders taken")
stock = meter.create_up_down_counter("shop.stock", unit="{item}", description="What is there")
latency = meter.create_histogram("shop.latency", unit="s", description="How long it took")
size = meter.create_histogram("shop.size", unit="By", description="Bytes of an answer")
meter.create_observable_gauge("shop.load", [lambda _: [__import__("opentelemetry.metrics").metrics.Observation(0.25, {"cpu": 0})]])

with tracer.start_as_current_span("GET /orders", kind=SpanKind.SERVER) as root:
    root.set_attributes({"http.route": "/orders", "retry": False, "count": -3, "ratio": 0.1, "tags": ["a", "b"],
                         "numbers": [1, 2], "empty": "", "big": 2**62, "unicode": "Grüße 🚀"})
    orders.add(1, {"kind": "web"})
    orders.add(2, {"kind": "web", "vip": True})
    stock.add(-4)
    for value in [0.001, 0.2, 7.5, 12_000.0]:
        latency.record(value, {"route": "/orders"})
        size.record(value * 100)
    size.record(0.0)
    with tracer.start_as_current_span("SELECT orders", kind=SpanKind.CLIENT) as query:
        query.add_event("rows", {"count": 12})
        query.set_status(Status(StatusCode.OK))
    with tracer.start_as_current_span("charge", kind=SpanKind.CLIENT, links=[Link(query.get_span_context(), {"why": "reads"})]) as charge:
        # As record_exception would say it, but without the paths of a machine.
        charge.add_event("exception", {"exception.type": "ValueError", "exception.stacktrace": "Traceback\nValueError: card refused"})
        charge.set_status(Status(StatusCode.ERROR, "card refused"))
    context = trace.set_span_in_context(root)
    logger.emit(LogRecord(timestamp=1_792_000_000_000_000_000, observed_timestamp=1_792_000_000_000_000_500, context=context,
                          severity_number=SeverityNumber.WARN, severity_text="WARNING", body="card refused",
                          attributes={"code": 51, "who": {"name": "x", "ids": [1, 2]}}))
    logger.emit(LogRecord(timestamp=1_792_000_000_000_000_001, severity_number=SeverityNumber.INFO, event_name="order.taken",
                          body={"order": 7, "items": ["a", "b"], "total": 9.5, "paid": True, "raw": b"\x00\xff"}))
    logger.emit(LogRecord(observed_timestamp=1_792_000_000_000_000_002, body=b"\x01\x02"))
    logger.emit(LogRecord(timestamp=1_792_000_000_000_000_003, body=["a", 1, None]))

with open(sys.argv[1], "wb") as out:
    for message in [encode_spans(spans.get_finished_spans()), encode_metrics(reader.get_metrics_data()),
                    encode_logs(logs.get_finished_logs())]:
        data = message.SerializeToString()
        out.write(struct.pack(">I", len(data)) + data)
