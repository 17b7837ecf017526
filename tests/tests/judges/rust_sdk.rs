//! Telemetry of a small program with the OpenTelemetry SDK for Rust, encoded by its own transforms, through a full Perfetto
//! trace and back: the same spans, points and log records.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity},
    metrics::MeterProvider,
    trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_proto::{
    tonic::{collector::metrics::v1::ExportMetricsServiceRequest, logs::v1::LogsData, trace::v1::TracesData},
    transform::{
        logs::tonic::group_logs_by_resource_and_scope, trace::tonic::group_spans_by_resource_and_scope,
    },
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter, SdkLoggerProvider},
    metrics::{
        PeriodicReader, SdkMeterProvider, Temporality, data::ResourceMetrics, exporter::PushMetricExporter,
    },
    trace::{SdkTracerProvider, SpanData, SpanExporter},
};
use prost::Message;
use pulsetrain_otlp::frames;
use pulsetrain_tests::{Folder, Items, TraceProcessor, convert};

/// The exporter of all signals, which appends to a file in memory.
#[derive(Clone, Debug)]
struct Exported {
    file: Arc<Mutex<Vec<u8>>>,
    resource: Resource,
}

impl Exported {
    fn append(&self, message: &impl Message) {
        let mut file = self.file.lock().expect("no exporter panics");
        frames::append_binary(&message.encode_to_vec(), &mut file).expect("a small message has a length");
    }
}

impl SpanExporter for Exported {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let resource_spans = group_spans_by_resource_and_scope(batch, &(&self.resource).into());
        self.append(&TracesData { resource_spans });
        Ok(())
    }
}

impl LogExporter for Exported {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let resource_logs = group_logs_by_resource_and_scope(&batch, &(&self.resource).into());
        self.append(&LogsData { resource_logs });
        Ok(())
    }
}

impl PushMetricExporter for Exported {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.append(&ExportMetricsServiceRequest::from(metrics));
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Delta
    }
}

fn run_program(exported: &Exported) {
    let resource = || exported.resource.clone();
    let tracers = SdkTracerProvider::builder()
        .with_simple_exporter(exported.clone())
        .with_resource(resource())
        .build();
    let loggers = SdkLoggerProvider::builder()
        .with_simple_exporter(exported.clone())
        .with_resource(resource())
        .build();
    let reader = PeriodicReader::builder(exported.clone()).build();
    let meters = SdkMeterProvider::builder()
        .with_reader(reader)
        .with_resource(resource())
        .build();
    let scope = InstrumentationScope::builder("agent")
        .with_version("0.3")
        .with_schema_url("https://opentelemetry.io/schemas/1.26.0")
        .with_attributes([KeyValue::new("edition", 2024)])
        .build();
    let (tracer, meter) = (
        tracers.tracer_with_scope(scope.clone()),
        meters.meter_with_scope(scope),
    );
    let tokens = meter.u64_counter("gen_ai.tokens").with_unit("{token}").build();
    let latency = meter.f64_histogram("gen_ai.latency").with_unit("s").build();
    let temperature = meter.f64_gauge("gen_ai.temperature").build();
    let logger = loggers.logger("agent.log");
    tracer.in_span("invoke_agent", |context| {
        let agent = context.span();
        agent.set_attribute(KeyValue::new(
            "tools",
            opentelemetry::Value::Array(vec![true, false].into()),
        ));
        let mut call = tracer
            .span_builder("chat")
            .with_kind(SpanKind::Client)
            .with_attributes([KeyValue::new("temperature", 0.25)])
            .start_with_context(&tracer, &context);
        call.add_link(agent.span_context().clone(), vec![KeyValue::new("why", "asks")]);
        call.add_event("first token", vec![KeyValue::new("index", 1)]);
        call.set_status(Status::error("cut off"));
        call.end();
        tokens.add(7, &[KeyValue::new("kind", "prompt")]);
        latency.record(0.25, &[]);
        latency.record(12.5, &[]);
        temperature.record(0.5, &[]);
        let mut record = logger.create_log_record();
        record.set_severity_number(Severity::Warn);
        record.set_body(AnyValue::from("the answer was cut off"));
        record.add_attribute("tokens", 7);
        logger.emit(record);
    });
    meters.force_flush().expect("the exporter never fails");
    meters.shutdown().expect("the exporter never fails");
}

#[test]
fn rust_sdk_spans_round_trip_through_a_full_trace() {
    let exported = Exported {
        file: Arc::default(),
        resource: Resource::builder_empty()
            .with_attributes([
                KeyValue::new("service.name", "assistant"),
                KeyValue::new("process.pid", 4711),
            ])
            .build(),
    };
    run_program(&exported);
    let folder = Folder::new();
    let [lines, trace, back] = ["in.jsonl", "full.pftrace", "back.jsonl"].map(|name| folder.path(name));
    let input = folder.file("in.binpb", exported.file.lock().unwrap().as_slice());
    convert(&[&input], &lines, &[]).expect_code(0);
    convert(&[&input], &trace, &["--attributes", "full"]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    let (before, after) = (Items::read(&lines), Items::read(&back));
    after.assert_same(&before);
    assert_eq!(before.of_kind("span").len(), 2);
    assert_eq!(
        before.values("gen_ai.tokens").first().map(|(_, value)| *value),
        Some(7.0)
    );
    assert_eq!(before.len(), 6);
    if let Some(judge) = TraceProcessor::require_or_skip() {
        let [failed] = judge.query(
            &trace,
            ["select name from slice where extract_arg(arg_set_id, 'debug.otel.status_code') = 2"],
        );
        assert_eq!(failed, [serde_json::json!({"name": "chat"})]);
    }
}
