//! Common faults, each alone: `doctor` finds the fault and prints the correct fix.

mod logs;

use std::{
    ffi::OsStr,
    fs::{self, Permissions},
    net::{TcpListener, TcpStream},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use pulsetrain_tests::{
    Answer, Certificates, Collector, FakeEndpoint, Folder, ForwardProxy, Judge, SmallDisk, as_unprivileged,
    command, corpus, free_port, some_or_return,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use crate::{doctor::findings_of, exposure::agent::Agent};

/// A log with common keys.
const STEPS: &str = "step=1 loss=2.5\nstep=2 loss=2.4\nstep=3 loss=2.3\nstep=4 loss=2.2\n";

/// No variables.
const NONE: &[(&str, &str)] = &[];

/// Returns a command of `doctor` with variables and additional arguments.
fn doctor<V: AsRef<OsStr>>(variables: &[(&str, V)], arguments: &[&str]) -> Command {
    let mut command = command(["doctor", "--json"]);
    command
        .envs(variables.iter().map(|(name, value)| (name, value.as_ref())))
        .args(arguments);
    command
}

/// Asserts that one finding has `words` in its text, and `fix` in its fix. Returns the findings.
fn assert_fix(command: Command, words: &str, fix: &str) -> Vec<serde_json::Value> {
    let shown = format!("{command:?}");
    let found = findings_of(command).all;
    let is_it = |finding: &&serde_json::Value| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        [text("place"), text("what")].join(" ").contains(words) && text("do").contains(fix)
    };
    assert!(
        found.iter().any(|finding| is_it(&finding)),
        "{shown}: {words} -> {fix}? {found:#?}"
    );
    found
}

/// Like [`assert_fix`], for the only finding that is not `ok`.
fn assert_only_fix(command: Command, words: &str, fix: &str) {
    let found = assert_fix(command, words, fix);
    assert_eq!(faults(&found), 1, "{found:#?}");
}

/// Returns the number of findings that are not `ok`, without those of the GPUs of this machine.
fn faults(found: &[serde_json::Value]) -> usize {
    let of_gpus = |place: &serde_json::Value| place.as_str().is_some_and(|place| place.starts_with("GPU"));
    found
        .iter()
        .filter(|finding| finding["level"] != "ok" && !of_gpus(&finding["place"]))
        .count()
}

/// Variables, the text of a finding and its fix, and the number of findings if it is not 1. `$URL` is an endpoint that accepts
/// everything, `$LOST` answers 404, nothing listens at `$DEAD`.
const FAULTY_VARIABLES: &str = "\
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_EXPORTER_OTLP_PROTOCOL=http | PROTOCOL | set it to grpc, http/protobuf or http/json
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_SDK_DISABLED=true | OTEL_SDK_DISABLED | unset OTEL_SDK_DISABLED
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_EXPORTER_OTLP_TIMEOUT=10s | TIMEOUT | milliseconds, such as 10000
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_EXPORTER_OTLP_COMPRESSION=brotli | COMPRESSION | gzip, zstd or none
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_EXPORTER_OTLP_HEADERS=abc | HEADERS | write key=value
OTEL_EXPORTER_OTLP_ENDPOINT=$URL OTEL_RESOURCE_ATTRIBUTES=team:nlp | team:nlp | key=value
OTEL_EXPORTER_OTLP_ENDPOINT=$DEAD | Connection refused | start a receiver there
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=$DEAD/v1/traces OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:1/v1/metrics OTEL_LOGS_EXPORTER=none | 127.0.0.1:1/v1/metrics | start a receiver there | 2
OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none | no signal is sent | unset one of them
OTEL_EXPORTER_OTLP_ENDPOINT=$URL/v1/metrics | ends with /v1/metrics | take /v1/metrics off
OTEL_EXPORTER_OTLP_ENDPOINT=grpc://127.0.0.1:4317 | grpc://127.0.0.1:4317 | in place of this scheme
OTEL_EXPORTER_OTLP_ENPOINT=$URL | OTEL_EXPORTER_OTLP_ENPOINT | rename it to OTEL_EXPORTER_OTLP_ENDPOINT
OTEL_EXPORTER_OTLP_ENDPOINT=$URL PULSETRAIN_RUNID=7 | PULSETRAIN_RUNID | rename it to PULSETRAIN_RUN_ID
OTEL_EXPORTER_OTLP_ENDPOINT=$URL TORCHELASTIC_RUN_ID=none WORLD_SIZE=4 | no id names the run of all 4 ranks | set PULSETRAIN_RUN_ID
OTEL_EXPORTER_OTLP_ENDPOINT=$LOST/v1/metrics | ends with /v1/metrics | take /v1/metrics off
OTEL_EXPORTER_OTLP_ENDPOINT=localhost:4318 | localhost:4318 | write a URL such as
OTEL_EXPORTER_OTLP_ENDPOINT=http://no.such.host.invalid:4318 | dns error | check the host name
OTEL_EXPORTER_OTLP_ENDPOINT=$URL RANK=8 WORLD_SIZE=8 | RANK=8 | count ranks from 0
OTEL_EXPORTER_OTLP_ENDPOINT=$URL RANK=1 SLURM_PROCID=2 | SLURM_PROCID=2 | one launcher
OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1 OTEL_EXPORTER_OTLP_INSECURE=true | the scheme wins | unset OTEL_EXPORTER_OTLP_INSECURE | 2
OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:1 OTEL_EXPORTER_OTLP_CERTIFICATE=/none.pem | /none.pem | give a PEM file
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_PROTOCOL=grpc | do not speak gRPC | OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf | do not speak HTTP | OTEL_EXPORTER_OTLP_PROTOCOL=grpc
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=grpc OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none | TRACES_PROTOCOL=grpc: receivers do not speak gRPC | OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf";

#[test]
fn each_invalid_variable_is_reported_with_a_fix() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let dead = format!("http://127.0.0.1:{}", free_port());
    let url = endpoint.url();
    let other = FakeEndpoint::start([], Answer::Refuse(404));
    for row in FAULTY_VARIABLES.lines() {
        let row = row.replace("$URL", &url).replace("$DEAD", &dead);
        let row = row.replace("$LOST", &other.url());
        let mut parts = row.split(" | ");
        let [variables, words, fix] = [(); 3].map(|()| parts.next().expect("a row has three parts"));
        let count: usize = parts.next().map_or(1, |count| count.parse().expect("a number"));
        let pairs = variables.split(' ').map(|pair| pair.split_once('='));
        let variables: Vec<_> = pairs.collect::<Option<_>>().expect("a variable has a value");
        // A resolver that does not respond delays the check.
        let found = assert_fix(doctor(&variables, &["--timeout", "60"]), words, fix);
        assert_eq!(faults(&found), count, "{row}: {found:#?}");
    }
}

#[test]
fn all_invalid_variables_are_reported_together() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "abc"),
    ];
    assert_fix(doctor(&variables, &[]), "nonsense", "write a URL");
    assert_fix(doctor(&variables, &[]), "HEADERS", "write key=value");
}

#[test]
fn rejecting_receiver_is_reported_with_the_fix_for_its_status() {
    for (status, fix) in [
        (401, "set the credentials"),
        (429, "raise its limits"),
        (404, "check the path"),
        (407, "the proxy's user and password"),
        (500, "look at its log for the error"),
        (501, "check the port"),
        (502, "correct its address in the proxy"),
        (503, "start it, raise its limits, or send less"),
        (504, "raise the timeout of the proxy"),
    ] {
        let endpoint = FakeEndpoint::start([], Answer::Refuse(status));
        assert_only_fix(
            doctor(NONE, &["--to", &endpoint.url()]),
            &format!("HTTP status {status}"),
            fix,
        );
    }
}

/// Returns a listener that nothing accepts connections of, and the connections that fill its queue.
fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok();
    (listener, (0..10_000).map_while(connect).collect())
}

#[test]
fn silent_receiver_is_asked_once_and_differs_from_a_filtered_port() {
    let hanging = FakeEndpoint::start([], Answer::Hang);
    assert_only_fix(
        doctor(NONE, &["--to", &hanging.url(), "--timeout", "0.5"]),
        "gave no answer within 0.5 s",
        "look at the receiver's log",
    );
    assert_eq!(hanging.received().len(), 1);
    let (filtered, _connections) = full_listener();
    let address = filtered.local_addr().expect("an address");
    for scheme in ["http", "grpc"] {
        let url = format!("{scheme}://{address}");
        assert_only_fix(
            doctor(NONE, &["--to", &url, "--timeout", "0.5"]),
            "takes no connection within 0.5 s",
            "let the firewalls on the way",
        );
    }
}

#[test]
fn unusable_file_of_a_sink_is_reported_once() {
    let folder = Folder::new();
    let refusing = FakeEndpoint::start([], Answer::Refuse(401));
    let refusing_url = refusing.url();
    let token = folder.file("token", "old").display().to_string();
    let refused = format!("the credentials in {token} were refused");
    let of_token = format!("bearer_token_file: {token}");
    let nowhere = "https://127.0.0.1:1";
    for (url, file, words, fix) in [
        (
            nowhere,
            "bearer_token_file: /none",
            "cannot use /none",
            "write one line with the token",
        ),
        (
            nowhere,
            "tls: {ca: /none.pem}",
            "cannot use /none.pem",
            "give a PEM file",
        ),
        (
            refusing_url.as_str(),
            of_token.as_str(),
            "HTTP status 401",
            refused.as_str(),
        ),
    ] {
        let sink = format!("sinks: {{c: {{otlp: {{endpoint: '{url}', {file}}}}}}}\n");
        let file = config(&folder, &(source(&folder) + &sink));
        assert_only_fix(doctor(NONE, &["--config", &file]), words, fix);
    }
}

#[test]
fn address_without_a_prometheus_is_reported_with_one_fix() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let dead = format!("http://127.0.0.1:{}", free_port());
    let found = assert_fix(
        doctor(NONE, &["--to", &endpoint.url(), "--prometheus", &dead]),
        "Connection refused",
        "start Prometheus there",
    );
    let text = format!("{found:?}");
    assert!(!text.contains("is it running there"), "{text}");
}

#[test]
fn prometheus_is_asked_through_the_proxy_of_the_environment() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let series = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"trainer"},"value":[1792000000,"3"]}]}}"#;
    let prometheus = FakeEndpoint::start([], Answer::Say(series.to_owned()));
    let proxy = ForwardProxy::start(&prometheus.url());
    let arguments = [
        "--to",
        &endpoint.url(),
        "--prometheus",
        "http://prometheus.invalid:9090",
    ];
    let asked = |no_proxy: &str| {
        let variables = [("HTTP_PROXY", proxy.url()), ("NO_PROXY", no_proxy.to_owned())];
        doctor(&variables, &arguments)
    };
    assert_only_fix(asked("*.invalid"), "dns error", "start Prometheus there");
    assert_eq!(proxy.heads(), [""; 0]);
    let found = findings_of(asked("*.example")).all;
    assert!(
        format!("{found:?}").contains("has series of the jobs trainer"),
        "{found:#?}"
    );
    assert!(proxy.heads()[0].starts_with("GET http://prometheus.invalid:9090/api/v1/query?"));
}

/// Starts an agent whose receiver has this certificate.
fn tls_agent((certificate, key): (&Path, &Path)) -> Agent {
    let tls = format!(
        "tls: {{certificate: {}, key: {}}}",
        certificate.display(),
        key.display()
    );
    Agent::with_receiver(Folder::new(), &tls)
}

#[test]
fn each_tls_failure_is_reported_with_its_fix() {
    let (certificates, others) = (Certificates::generate(), Certificates::generate());
    let (certificate, key) = certificates.server();
    let agent = tls_agent((&certificate, &key));
    let to = |scheme: &str, host: &str| format!("{scheme}://{host}:{}", agent.receiver);
    let authority = certificates.authority().display().to_string();
    let other = others.authority().display().to_string();
    let ca = |file: &str| [("OTEL_EXPORTER_OTLP_CERTIFICATE", file.to_owned())];
    let https = to("https", "127.0.0.1");
    assert_fix(
        doctor(NONE, &["--to", &https]),
        "UnknownIssuer",
        "the authority that signed",
    );
    assert_fix(
        doctor(&ca(&other), &["--to", &https]),
        "certificate",
        "the authority that signed",
    );
    assert_fix(
        doctor(NONE, &["--to", &to("http", "127.0.0.1")]),
        "TLS",
        "use https://",
    );
    let found = findings_of(doctor(&ca(&authority), &["--to", &https]));
    assert!(
        found.all.iter().all(|finding| finding["level"] != "wrong"),
        "{:#?}",
        found.all
    );

    let plain = FakeEndpoint::start([], Answer::Accept);
    let url = plain.url().replace("http://", "https://");
    assert_fix(doctor(NONE, &["--to", &url]), "endpoint", "does not speak TLS");
}

/// Writes a self-signed certificate of a subject into a folder: `self.pem` and `self.key`.
fn self_signed(folder: &Folder, subject: &str, is_ca: IsCa) -> (PathBuf, PathBuf) {
    let mut params = CertificateParams::new([subject.to_owned()]).expect("it is a subject");
    params.is_ca = is_ca;
    let key = KeyPair::generate().expect("a key can be made");
    let certificate = params.self_signed(&key).expect("a key can sign itself");
    let certificate = folder.file("self.pem", certificate.pem());
    (certificate, folder.file("self.key", key.serialize_pem()))
}

#[test]
fn certificate_for_another_host_or_a_ca_certificate_has_a_specific_fix() {
    // A certificate authority, as from `openssl req -x509`, and a certificate for another host.
    for (subject, is_ca, words, fix) in [
        (
            "127.0.0.1",
            IsCa::Ca(BasicConstraints::Unconstrained),
            "CaUsedAsEndEntity",
            "CA:FALSE",
        ),
        (
            "other.example",
            IsCa::ExplicitNoCa,
            "not valid for name",
            "use the host name",
        ),
    ] {
        let folder = Folder::new();
        let (certificate, key) = self_signed(&folder, subject, is_ca);
        let agent = tls_agent((&certificate, &key));
        let variables = [("OTEL_EXPORTER_OTLP_CERTIFICATE", &certificate)];
        let url = format!("https://127.0.0.1:{}", agent.receiver);
        assert_fix(doctor(&variables, &["--to", &url]), words, fix);
    }
}

#[test]
fn wrong_collector_port_is_reported_with_the_right_scheme() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let collector = Collector::start(&program);
    let (grpc, http) = (collector.grpc(), collector.http());
    assert_fix(
        doctor(NONE, &["--to", &format!("http://{grpc}")]),
        "endpoint",
        "use grpc://",
    );
    assert_fix(
        doctor(NONE, &["--to", &format!("grpc://{http}")]),
        "endpoint",
        "use http://",
    );
}

fn config(folder: &Folder, yaml: &str) -> String {
    let text = format!("state_folder: state\ngpu: {{enabled: false}}\n{yaml}");
    let file = folder.file("pulsetrain.yaml", text);
    file.display().to_string()
}

/// Returns keys for an agent without a health address, and with a log as its source.
fn source(folder: &Folder) -> String {
    let log = folder.file("train.log", STEPS);
    format!(
        "health: {{enabled: false}}\nsources: {{a: {{logs: {{paths: ['{}']}}}}}}\n",
        log.display()
    )
}

#[test]
fn invalid_configuration_is_reported_with_a_fix() {
    let folder = Folder::new();
    let file = config(&folder, "sinks: {}\n");
    assert_fix(
        doctor(NONE, &["--config", &file]),
        "all data would be lost",
        "remove the key",
    );
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let page = format!("sinks: {{page: {{prometheus: {{listen: 127.0.0.1:{port}}}}}}}\n");
    let file = config(&folder, &(source(&folder) + &page));
    assert_only_fix(
        doctor(NONE, &["--config", &file]),
        &format!("pulsetrain.yaml:5:37 cannot listen on 127.0.0.1:{port}"),
        &format!("process {}", std::process::id()),
    );
    let yaml = "sinks:\n  a: {oltp: {}}\n  b: {file: {path: '${UNSET}'}}\n";
    let file = config(&folder, yaml);
    let set = "set it, or give a default as ${UNSET:-default}";
    let found = assert_fix(doctor(NONE, &["--config", &file]), "UNSET is not set", set);
    assert!(
        found
            .iter()
            .any(|finding| finding["do"] == "did you mean \"otlp\"?"),
        "all faults: {found:#?}"
    );
    assert_fix(
        doctor(
            &[("NOT_UTF_8", OsStr::from_bytes(b"\xff"))],
            &["--config", "/none.yaml"],
        ),
        "cannot be read",
        "check the path",
    );
}

#[test]
fn separators_in_a_path_or_a_url_stay_in_the_cause() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://127.0.0.1:1"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "a; b.pem"),
    ];
    assert_only_fix(
        doctor(&variables, &[]),
        "cannot use a; b.pem: I/O error",
        "give a PEM file",
    );
    let folder = Folder::new();
    for url in ["htp://127.0.0.1:9", "http://127.0.0.1:9/; retry later"] {
        let sink = format!("sinks: {{c: {{otlp: {{endpoint: '{url}'}}}}}}\n");
        let file = config(&folder, &(source(&folder) + &sink));
        assert_only_fix(
            doctor(NONE, &["--config", &file]),
            &format!("target is {url:?}"),
            "write grpc://host:4317",
        );
    }
    let log = folder.file("a; b.log", "What a day.\n").display().to_string();
    assert_fix(
        doctor(NONE, &[&log]),
        "a; b.log unknown log format; found no lines",
        "check that it is a training log",
    );
}

#[test]
fn unwritable_output_folder_is_reported_with_a_fix() {
    let folder = Folder::for_all();
    let file = file_sink(&folder, "/proc/out.jsonl");
    let command = as_unprivileged(&doctor(NONE, &["--config", &file]), folder.root());
    assert_fix(
        command,
        "folder /proc no file can be written",
        "let this user write there",
    );
}

#[test]
fn output_file_that_cannot_be_opened_is_reported_with_a_fix() {
    let folder = Folder::for_all();
    fs::create_dir(folder.path("folder.jsonl")).expect("a folder can be made");
    let read_only = folder.file("old.jsonl", "");
    fs::set_permissions(&read_only, Permissions::from_mode(0o444)).expect("permissions can be set");
    for (name, fix) in [
        ("folder.jsonl", "name a file in this folder"),
        ("missing/out.jsonl", "create its folder"),
        ("old.jsonl", "let this user write there"),
        ("old.jsonl/out.jsonl", "a part of this one is a file"),
    ] {
        let path = folder.path(name).display().to_string();
        let mut command = doctor(NONE, &["--config", &file_sink(&folder, &path)]);
        if name == "old.jsonl" {
            command = as_unprivileged(&command, folder.root());
        }
        assert_fix(command, &format!("file {path} it cannot be written"), fix);
    }
}

/// Returns a configuration with a sink that writes this file.
fn file_sink(folder: &Folder, path: &str) -> String {
    let yaml = format!("health: {{enabled: false}}\nsinks: {{f: {{file: {{path: {path}}}}}}}\n");
    config(folder, &yaml)
}

#[test]
fn full_disk_is_reported_with_a_fix() {
    let folder = Folder::new();
    let disk = some_or_return!(SmallDisk::mount(folder.root(), "256k"));
    let other = disk.path().join("other");
    fs::create_dir(&other).expect("a folder can be made");
    disk.fill();
    let sinks = format!(
        "sinks:\n  a: {{file: {{path: {}/out.jsonl}}}}\n  b: {{file: {{path: {}/out.jsonl}}}}\n",
        disk.path().display(),
        other.display()
    );
    let file = config(&folder, &(source(&folder) + &sinks));
    let command = doctor(NONE, &["--config", &file]);
    assert_only_fix(command, "no file can be written", "make room");
}
