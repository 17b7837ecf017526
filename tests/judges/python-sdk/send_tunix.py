"""Sends metrics as Tunix does (`enable_opentelemetry`): the OpenTelemetry SDK's gauges, under Tunix's names, by its OTLP exporter.

usage: send_tunix.py grpc|http ENDPOINT FILE

FILE is OTLP/JSON, an export a line; every point of it is set on the gauge of its name, and each line is then exported. The
SDK exports gauges again that were not set since, so the receiver gets more than the file has. A counter, a span and a log
record of the program itself go with it. Fails where one export does.
"""

import json
import logging
import sys

from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

RESOURCE = Resource({"service.name": "post-training", "service.version": "7", "host.cpus": 96, "train.run.id": "grpo-1"})


def exporters(protocol, endpoint):
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

        return [kind(endpoint=endpoint, insecure=True) for kind in (OTLPMetricExporter, OTLPSpanExporter, OTLPLogExporter)]
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    kinds = {"metrics": OTLPMetricExporter, "traces": OTLPSpanExporter, "logs": OTLPLogExporter}
    return [kind(endpoint=f"{endpoint}/v1/{name}", compression=Compression.Gzip) for name, kind in kinds.items()]


def main(protocol, endpoint, path):
    metrics, spans, logs = exporters(protocol, endpoint)
    results = []
    export = metrics.export
    metrics.export = lambda *args, **named: results.append(export(*args, **named)) or results[-1]
    reader = PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)
    provider = MeterProvider(metric_readers=[reader], resource=RESOURCE)
    replay(provider, path)
    provider.shutdown()
    tell_of_the_program(spans, logs)
    failed = [result for result in results if result is not MetricExportResult.SUCCESS]
    if failed or not results:
        sys.exit(f"{len(failed)} of {len(results)} exports of metrics failed")


def replay(provider, path):
    tunix = provider.get_meter("tunix", "0.1.0")
    requests = provider.get_meter("app").create_counter("app.requests", unit="{request}")
    gauges = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            for name, unit, point in points(json.loads(line)):
                gauge = gauges.setdefault(name, tunix.create_gauge(name, unit=unit))
                attributes = {pair["key"]: pair["value"]["stringValue"] for pair in point["attributes"]}
                gauge.set(point["asDouble"] if "asDouble" in point else int(point["asInt"]), attributes)
            requests.add(3, {"route": "/v1"})
            provider.force_flush()


def points(export):
    for resource in export["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                for point in metric["gauge"]["dataPoints"]:
                    yield metric["name"], metric["unit"], point


def tell_of_the_program(spans, logs):
    tracing = TracerProvider(resource=RESOURCE)
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    with tracing.get_tracer("app").start_as_current_span("load weights"):
        pass
    tracing.shutdown()
    logging_provider = LoggerProvider(resource=RESOURCE)
    logging_provider.add_log_record_processor(SimpleLogRecordProcessor(logs))
    logger = logging.getLogger("app")
    logger.addHandler(LoggingHandler(logger_provider=logging_provider))
    logger.warning("weights are loaded")
    logging_provider.shutdown()


main(*sys.argv[1:])
