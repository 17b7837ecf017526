//! The OpenTelemetry SDK for Python and the Collector as clients of the receiver.

use std::{
    cell::Cell,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{
    Certificates, Folder, Judge, Process, free_port, http::post_json, some_or_return, wait_until,
};

use crate::exposure::agent::{Agent, basic, bearer, secrets, tls};

/// A client of the Python SDK.
struct Python<'a> {
    program: &'a Path,
    protocol: &'a str,
    endpoint: String,
    authority: Option<PathBuf>,
    identity: Option<(PathBuf, PathBuf)>,
    authorization: &'a str,
}

impl Python<'_> {
    /// Sends a span. Returns whether it was accepted, and the log of the SDK.
    fn send(&self) -> (bool, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent/exposure/send.py");
        let mut command = Command::new(self.program);
        command
            .arg(script)
            .arg(self.protocol)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &self.endpoint)
            .env("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
            // The library `requests` would use these variables instead of the exporter's own file.
            .env_remove("REQUESTS_CA_BUNDLE")
            .env_remove("CURL_CA_BUNDLE");
        if self.endpoint.starts_with("unix:") {
            command.env("OTEL_EXPORTER_OTLP_INSECURE", "true");
        }
        if !self.authorization.is_empty() {
            let value = self.authorization.replace(' ', "%20");
            command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization={value}"));
        }
        if let Some(authority) = &self.authority {
            command.env("OTEL_EXPORTER_OTLP_CERTIFICATE", authority);
        }
        if let Some((certificate, key)) = &self.identity {
            command
                .env("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", certificate)
                .env("OTEL_EXPORTER_OTLP_CLIENT_KEY", key);
        }
        let output = command.output().expect("python can be started");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), log)
    }
}

#[test]
fn python_sdk_requires_a_certificate_and_a_token_over_both_protocols() {
    let program = some_or_return!(Judge::PythonSdk.require_or_skip());
    let [ours, others] = [Certificates::generate(), Certificates::generate()];
    let folder = secrets(&ours, "first-token\n");
    let keys = format!("{}, {}", tls(folder.root(), true), bearer(folder.root()));
    let agent = Agent::with_receiver(folder, &keys);
    let spans = Cell::new(0);
    let client = |protocol, identity, authority: &Certificates, authorization| {
        let client = Python {
            program: &program,
            protocol,
            // gRPC for Python checks only names, not IP addresses, of a certificate.
            endpoint: format!("https://localhost:{}", agent.receiver),
            authority: Some(authority.authority()),
            identity,
            authorization,
        };
        let (accepted, log) = client.send();
        spans.set(spans.get() + usize::from(accepted));
        (accepted, log)
    };
    for (protocol, refusal) in [("http", "401"), ("grpc", "UNAUTHENTICATED")] {
        let good = |token| client(protocol, Some(ours.client()), &ours, token);
        let (accepted, log) = good("Bearer first-token");
        assert!(accepted, "{protocol}: {log}");
        for token in ["Bearer another-token", "Basic Zmlyc3Q6dG9rZW4=", ""] {
            let (accepted, log) = good(token);
            assert!(!accepted && log.contains(refusal), "{protocol} {token}: {log}");
        }
        for (identity, authority, reason) in [
            (None, &ours, "the client has no certificate"),
            (
                Some(ours.expired_client()),
                &ours,
                "the certificate of the client has expired",
            ),
            (
                Some(others.client()),
                &ours,
                "the certificate of the client is not of an authority in client_ca",
            ),
            (
                Some(ours.client()),
                &others,
                "the client does not trust the certificate of this server",
            ),
        ] {
            let (accepted, log) = client(protocol, identity, authority, "Bearer first-token");
            assert!(!accepted, "{protocol} {reason}: {log}");
            agent.wait_for_log(reason);
        }
    }
    wait_until("the accepted spans are there", || {
        agent.spans() == 2 && spans.get() == 2
    });

    // While both tokens are accepted, the clients change theirs.
    let by = |token| client("http", Some(ours.client()), &ours, token);
    agent.rotate("token", b"first-token\nsecond-token\n");
    assert!(by("Bearer first-token").0 && by("Bearer second-token").0);
    fs::write(agent.path("token"), "second-token\n").expect("a temporary file can be written");
    wait_until("the old token is refused", || !by("Bearer first-token").0);
    let (accepted, log) = by("Bearer second-token");
    assert!(accepted, "{log}");

    // If the new file contains no token, the last token stays in use.
    fs::write(agent.path("token"), "\n").expect("a temporary file can be written");
    agent.wait_for_log("it contains no token");
    assert!(by("Bearer second-token").0);

    // A certificate of another authority: only clients that trust that authority can connect.
    let (certificate, key) = others.server();
    fs::copy(key, agent.path("server.key")).expect("a temporary file can be copied");
    let certificate = fs::read(certificate).expect("the certificate was just made");
    agent.rotate("server.pem", &certificate);
    let (accepted, log) = client("http", Some(ours.client()), &others, "Bearer second-token");
    assert!(accepted, "{log}");
    assert!(!by("Bearer second-token").0);
    wait_until("what was accepted has come through, and nothing else", || {
        agent.spans() == spans.get()
    });
}

#[test]
fn python_sdk_reports_an_expired_server_certificate() {
    let program = some_or_return!(Judge::PythonSdk.require_or_skip());
    let certificates = Certificates::generate();
    let folder = secrets(&certificates, "token");
    let (certificate, key) = certificates.expired_server();
    fs::copy(certificate, folder.path("server.pem")).expect("a temporary file can be copied");
    fs::copy(key, folder.path("server.key")).expect("a temporary file can be copied");
    let keys = tls(folder.root(), false);
    let agent = Agent::with_receiver(folder, &keys);
    let client = Python {
        program: &program,
        protocol: "http",
        endpoint: format!("https://127.0.0.1:{}", agent.receiver),
        authority: Some(certificates.authority()),
        identity: None,
        authorization: "",
    };
    let (accepted, log) = client.send();
    assert!(!accepted && log.contains("certificate has expired"), "{log}");
    agent.wait_for_log("the certificate of this server has expired");
    let plain = Python {
        endpoint: format!("http://127.0.0.1:{}", agent.receiver),
        ..client
    };
    let (accepted, log) = plain.send();
    assert!(!accepted && log.contains("400"), "{log}");
    agent.wait_for_log("the client speaks plain HTTP");
}

#[test]
fn the_python_sdk_sends_over_a_unix_socket() {
    let program = some_or_return!(Judge::PythonSdk.require_or_skip());
    let folder = secrets(&Certificates::generate(), "token");
    let keys = format!("socket_mode: \"0600\", {}", bearer(folder.root()));
    let agent = Agent::with_receiver(folder, &keys);
    let client = |authorization| {
        Python {
            program: &program,
            protocol: "grpc",
            endpoint: format!("unix:{}", agent.path("otlp.sock").display()),
            authority: None,
            identity: None,
            authorization,
        }
        .send()
    };
    let (accepted, log) = client("Bearer token");
    assert!(accepted, "{log}");
    let (accepted, log) = client("Bearer other");
    assert!(!accepted && log.contains("UNAUTHENTICATED"), "{log}");
    wait_until("the span is there", || agent.spans() == 1);
}

pub(crate) const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000001","spanId":"0000000000000001","name":"step"}]}]}]}"#;

/// Starts a Collector that forwards received data to the agent through one exporter.
fn collector(program: &Path, folder: &Folder, exporter: &str) -> (Process, u16) {
    let [http, health] = [free_port(), free_port()];
    let name = exporter.split(':').next().expect("an exporter has a name").trim();
    let text = format!(
        "extensions:
  health_check: {{endpoint: 127.0.0.1:{health}}}
receivers:
  otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{http}}}}}}}
exporters:
  {exporter}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [{name}]}}
"
    );
    let config = folder.file("collector.yaml", text);
    let mut process = Process::start("collector", Command::new(program).arg("--config").arg(config));
    process.wait_until_ready(|| pulsetrain_tests::http::answers_ok(health, "/"));
    (process, http)
}

#[test]
fn the_collector_sends_by_grpc_with_a_token_and_by_http_with_a_password() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let certificates = Certificates::generate();
    let (certificate, key) = certificates.client();
    let client_tls = format!(
        "tls: {{ca_file: {}, cert_file: {}, key_file: {}}}",
        certificates.authority().display(),
        certificate.display(),
        key.display()
    );
    for (exporter, is_basic, right, wrong) in [
        ("otlp", false, "Bearer secret", "Bearer sacred"),
        (
            "otlphttp",
            true,
            // collector:secret and collector:sacred
            "Basic Y29sbGVjdG9yOnNlY3JldA==",
            "Basic Y29sbGVjdG9yOnNhY3JlZA==",
        ),
    ] {
        let folder = secrets(&certificates, "secret");
        let auth = match is_basic {
            true => basic(folder.root(), "collector"),
            false => bearer(folder.root()),
        };
        let keys = format!("{}, {auth}", tls(folder.root(), true));
        let agent = Agent::with_receiver(folder, &keys);
        for (authorization, is_right) in [(right, true), (wrong, false)] {
            let text = format!(
                "{exporter}: {{endpoint: 'https://127.0.0.1:{}', {client_tls}, headers: {{authorization: '{authorization}'}}}}",
                agent.receiver
            );
            let scratch = Folder::new();
            let (collector, port) = collector(&program, &scratch, &text);
            let answer = post_json(port, "/v1/traces", SPAN);
            assert_eq!(answer.expect("the Collector answers").0, 200);
            if is_right {
                wait_until("the span has come through", || agent.spans() == 1);
            } else {
                wait_until("the Collector names the reason", || {
                    let log = collector.log();
                    log.contains("the credentials are wrong")
                        || log.contains("401")
                        || log.contains("Unauthenticated")
                });
                agent.wait_for_log("the credentials are wrong");
            }
            collector.stop();
        }
        assert_eq!(agent.spans(), 1);
    }
}
