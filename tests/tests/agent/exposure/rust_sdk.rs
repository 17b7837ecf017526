//! The OpenTelemetry SDK for Rust as a client of the receiver.

use std::{fs, time::Duration};

use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry_otlp::{
    SpanExporter, WithExportConfig, WithTonicConfig,
    tonic_types::{
        metadata::MetadataMap,
        transport::{Certificate, ClientTlsConfig, Identity},
    },
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use pulsetrain_tests::{Certificates, wait_until};

use crate::exposure::agent::{Agent, bearer, secrets, tls};

#[test]
fn the_rust_sdk_sends_with_a_certificate_and_a_token() {
    let certificates = Certificates::generate();
    let folder = secrets(&certificates, "secret");
    let keys = format!("{}, {}", tls(folder.root(), true), bearer(folder.root()));
    let agent = Agent::with_receiver(folder, &keys);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let _inside = runtime.enter();
    let read = |path| fs::read(path).expect("the certificate was just made");
    let (certificate, key) = certificates.client();
    let identity = Identity::from_pem(read(certificate), read(key));
    let authority = Certificate::from_pem(read(certificates.authority()));
    let send = |tls: ClientTlsConfig, token: &str| {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", token.parse().expect("a token is text"));
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(format!("https://127.0.0.1:{}", agent.receiver))
            .with_timeout(Duration::from_secs(5))
            .with_tls_config(tls)
            .with_metadata(metadata)
            .build()
            .expect("the client can be made");
        let tracing = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
        tracing.tracer("app").in_span("step", |_| {});
        let flushed = tracing.force_flush();
        let _ = tracing.shutdown();
        flushed.map_err(|error| error.to_string())
    };
    let trusting = ClientTlsConfig::new().ca_certificate(authority);
    let known = trusting.clone().identity(identity);
    assert_eq!(send(known.clone(), "Bearer secret"), Ok(()));
    wait_until("the span is there", || agent.spans() == 1);
    let refused = send(known, "Bearer sacred").unwrap_err();
    assert!(refused.contains("Unauthenticated"), "{refused}");
    assert!(send(trusting, "Bearer secret").is_err());
    agent.wait_for_log("the client has no certificate");
    assert_eq!(agent.spans(), 1);
}
