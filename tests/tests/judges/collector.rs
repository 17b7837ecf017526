//! A Surogate log is sent to a real Collector: the Collector writes exactly the items of our own file.

use pulsetrain_tests::{Certificates, Collector, Folder, Import, Judge, corpus, some_or_return};

const LOGS: [&str; 2] = ["surogate/training_dense.json", "surogate/training_moe.json"];

#[test]
fn every_item_arrives_over_grpc() {
    arrives(|collector| format!("grpc://{}", collector.grpc()), &[]);
}

#[test]
fn every_item_arrives_over_grpc_with_gzip() {
    arrives(
        |collector| format!("grpc://{}", collector.grpc()),
        &[("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")],
    );
}

#[test]
fn every_item_arrives_over_grpc_with_zstd() {
    arrives(
        |collector| format!("grpc://{}", collector.grpc()),
        &[("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")],
    );
}

#[test]
fn every_item_arrives_over_http_with_zstd() {
    for protocol in ["http/protobuf", "http/json"] {
        arrives(
            http,
            &[
                ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ],
        );
    }
}

#[test]
fn every_item_arrives_over_http_protobuf() {
    arrives(http, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]);
}

#[test]
fn every_item_arrives_over_http_protobuf_with_gzip() {
    arrives(
        http,
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ],
    );
}

#[test]
fn every_item_arrives_over_http_json() {
    arrives(http, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")]);
}

#[test]
fn every_item_arrives_over_http_json_with_gzip() {
    arrives(
        http,
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ],
    );
}

#[test]
fn every_item_arrives_over_grpc_with_a_client_certificate() {
    arrives_over_tls(|collector| format!("grpcs://{}", collector.grpc()));
}

#[test]
fn every_item_arrives_over_https_with_a_client_certificate() {
    arrives_over_tls(|collector| format!("https://{}", collector.http()));
}

#[test]
fn nothing_arrives_without_a_client_certificate() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let certificates = Certificates::generate();
    let collector = Collector::start_with_tls(&program, &certificates);
    let finished = Import::new(corpus(LOGS[0]))
        .to(format!("https://{}", collector.http()))
        .env("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.authority())
        .env("OTEL_EXPORTER_OTLP_TIMEOUT", "2000")
        .run()
        .expect_code(1);
    assert!(
        finished.stderr.contains("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"),
        "{}",
        finished.stderr
    );
    assert!(collector.stop().is_empty());
}

#[test]
fn nan_loss_arrives_at_the_collector_as_nan() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let folder = Folder::new();
    let record = r#"{"log": "step", "time": "2026-11-21 00:18:40.989663449", "step": 7, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": "inf", "loss": "nan", "lr": 2e-05}"#;
    let log = folder.file("training.json", format!("[\n  {record}\n]\n"));
    for protocol in ["http/protobuf", "http/json"] {
        let collector = Collector::start(&program);
        let import = Import::new(&log)
            .to(http(&collector))
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
        import.run().expect_code(0);
        let received = collector.stop();
        let [(time, loss)] = received.values("train.loss")[..] else {
            panic!("one train.loss is expected")
        };
        assert!(loss.is_nan(), "{loss}");
        assert_eq!(time % 1_000_000_000, 989_663_449);
        assert_eq!(received.values("train.grad_norm")[0].1, f64::INFINITY);
    }
}

fn arrives(url: impl Fn(&Collector) -> String, environment: &[(&str, &str)]) {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    for log in LOGS {
        let collector = Collector::start(&program);
        let mut import = Import::new(corpus(log)).to(url(&collector));
        for (name, value) in environment {
            import = import.env(name, value);
        }
        compare(import, collector);
    }
}

fn arrives_over_tls(url: impl Fn(&Collector) -> String) {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let certificates = Certificates::generate();
    let (certificate, key) = certificates.client();
    for log in LOGS {
        let collector = Collector::start_with_tls(&program, &certificates);
        let import = Import::new(corpus(log))
            .to(url(&collector))
            .env("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.authority())
            .env("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &certificate)
            .env("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key);
        compare(import, collector);
    }
}

/// Runs the import with standard output as a second target; both must have the same items, and at least one.
fn compare(import: Import, collector: Collector) {
    let ours = import.items();
    assert!(
        ours.len() > 300,
        "a log of 30 steps has more than {} items",
        ours.len()
    );
    collector.stop().assert_same(&ours);
}

fn http(collector: &Collector) -> String {
    format!("http://{}", collector.http())
}
