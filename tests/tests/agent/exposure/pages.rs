//! The Prometheus page, the live page, health checks and traces: a real Prometheus scrapes them, and others are rejected.

use std::path::Path;

use pulsetrain_tests::{
    Certificates, Folder, Judge, Prometheus, http::post_json, some_or_return, unix_nanos, wait_until,
};
use serde_json::Value;

use crate::exposure::agent::{Agent, Keys, basic, bearer, get, secrets, tls};

/// The state of each target of [`scrape_configuration`], sorted by name, and the reason if it is down.
const TARGETS: [(&str, &str, &str); 6] = [
    ("no-certificate", "down", "certificate required"),
    ("password", "up", ""),
    ("token", "up", ""),
    (
        "wrong-authority",
        "down",
        "certificate signed by unknown authority",
    ),
    ("wrong-password", "down", "401 Unauthorized"),
    ("wrong-token", "down", "401 Unauthorized"),
];

/// Starts an agent whose page has the keys that `page` returns for its folder.
fn protected_agent(certificates: &Certificates, page: fn(&Path) -> String) -> Agent {
    let folder = secrets(certificates, "secret");
    let page = page(folder.root());
    let keys = Keys {
        page: &page,
        ..Keys::default()
    };
    Agent::start(folder, &keys)
}

/// Returns a configuration of Prometheus that scrapes both agents, with valid and with wrong credentials, certificates and
/// authorities. The credentials are files in `folder`.
fn scrape_configuration(
    folder: &Folder,
    [by_token, by_password]: [u16; 2],
    [ours, others]: &[Certificates; 2],
) -> String {
    let [right, wrong] = [("right", "secret"), ("wrong", "sacred")]
        .map(|(name, secret)| folder.file(name, secret).display().to_string());
    let token = |file: &str| format!("authorization: {{credentials_file: {file}}}");
    let password = |file: &str| format!("basic_auth: {{username: prometheus, password_file: {file}}}");
    let (certificate, key) = ours.client();
    let (certificate, key) = (certificate.display(), key.display());
    let client = format!(", cert_file: {certificate}, key_file: {key}");
    let client = client.as_str();
    let jobs = [
        ("token", by_token, ours, client, token(&right)),
        ("wrong-token", by_token, ours, client, token(&wrong)),
        ("no-certificate", by_token, ours, "", token(&right)),
        ("wrong-authority", by_token, others, client, token(&right)),
        ("password", by_password, ours, "", password(&right)),
        ("wrong-password", by_password, ours, "", password(&wrong)),
    ];
    let jobs = jobs.map(|(name, port, authority, client, credentials)| {
        let authority = authority.authority();
        let authority = authority.display();
        format!(
            "- {{job_name: {name}, scheme: https, static_configs: [{{targets: ['127.0.0.1:{port}']}}], \
             tls_config: {{ca_file: {authority}{client}}}, {credentials}}}\n"
        )
    });
    format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n{}",
        jobs.concat()
    )
}

#[test]
fn prometheus_scrapes_only_with_certificates_and_credentials() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let authorities = [Certificates::generate(), Certificates::generate()];
    let ours = &authorities[0];
    let by_token = protected_agent(ours, |root| format!("{}, {}", tls(root, true), bearer(root)));
    let by_password = protected_agent(ours, |root| {
        format!("{}, {}", tls(root, false), basic(root, "prometheus"))
    });
    let folder = Folder::new();
    let configuration = scrape_configuration(&folder, [by_token.page, by_password.page], &authorities);
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), &configuration);
    wait_until("every target has been scraped", || {
        let targets = prometheus.targets();
        targets.len() == TARGETS.len() && targets.iter().all(|(_, health, _)| health != "unknown")
    });
    let mut targets = prometheus.targets();
    targets.sort();
    for ((job, health, error), (name, state, reason)) in targets.iter().zip(TARGETS) {
        assert_eq!((job.as_str(), health.as_str()), (name, state), "{error}");
        assert!(error.contains(reason), "{job}: {error}");
    }
    by_token.rotate("token", b"sacred\n");
    wait_until("the new token is accepted and the old one refused", || {
        let states = prometheus.targets();
        let health = |name: &str| {
            let target = states.iter().find(|(job, ..)| job == name);
            target.is_some_and(|(_, health, _)| health == "up")
        };
        health("wrong-token") && !health("token")
    });
}

#[test]
fn health_and_traces_require_the_token_and_pages_a_local_host_header() {
    let folder = secrets(&Certificates::generate(), "secret");
    let root: &Path = folder.root();
    let auth = bearer(root);
    let recorder = format!(
        "  recorder: {{flight_recorder: {{path: {}}}}}",
        root.join("recorded.pftrace").display()
    );
    let agent = Agent::start(
        folder,
        &Keys {
            health: &auth,
            sinks: &recorder,
            ..Keys::default()
        },
    );
    let (token, evil) = ("Authorization: Bearer secret\r\n", "Host: evil.example\r\n");
    for path in ["/healthz", "/readyz", "/trace"] {
        let refused = get(agent.health, path, "Host: localhost\r\n");
        assert!(refused.starts_with("HTTP/1.1 401"), "{path}: {refused}");
        assert!(
            refused
                .to_lowercase()
                .contains("www-authenticate: bearer realm=\"pulsetrain\""),
            "{refused}"
        );
        // A client with the token may use any host name: a browser on another site does not have the token.
        let answer = get(agent.health, path, &format!("{token}{evil}"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    for path in ["/metrics", "/", "/api/overview"] {
        for (host, status) in [(evil, "403"), ("Host: localhost\r\n", "200")] {
            let answer = get(agent.page, path, host);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{path}: {answer}"
            );
        }
    }
}

#[test]
fn the_status_names_each_source_and_sink_with_its_state() {
    let folder = Folder::new();
    let url = format!("http://127.0.0.1:{}", pulsetrain_tests::free_port());
    let dead = format!(
        "  dead: {{otlp: {{endpoint: '{url}'}}}}\n  forgetful: {{otlp: {{endpoint: '{url}', disk_queue: off}}}}"
    );
    let agent = Agent::start(
        folder,
        &Keys {
            sinks: &dead,
            ..Keys::default()
        },
    );
    let ask = || -> Value {
        let answer = get(agent.health, "/status", "Host: localhost\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        serde_json::from_str(body).expect("the status is JSON")
    };
    let of = |list: &Value, name: &str| {
        let list = list.as_array().expect("it is a list");
        let found = list.iter().find(|part| part["name"] == name);
        found.expect("every part is listed").clone()
    };
    let answer = post_json(agent.receiver, "/v1/traces", crate::exposure::clients::SPAN);
    assert!(matches!(answer, Some((200, _))), "{answer:?}");
    let now = unix_nanos();
    let record =
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"timeUnixNano":"{now}"}}]}}]}}]}}"#);
    let answer = post_json(agent.receiver, "/v1/logs", &record);
    assert!(matches!(answer, Some((200, _))), "{answer:?}");
    let mut status = Value::Null;
    wait_until("the dead sinks fail", || {
        status = ask();
        let sinks = &status["sinks"];
        let has = |name, state| of(sinks, name)["state"] == state;
        has("dead", "failing") && has("forgetful", "failing") && of(sinks, "dead")["queue"]["items"] == 0
    });
    let dead = of(&status["sinks"], "dead");
    assert!(
        dead["error"].as_str().is_some_and(|error| !error.is_empty()),
        "{dead}"
    );
    assert!(
        dead["disk"]["items"].as_u64().is_some_and(|items| items > 0),
        "{dead}"
    );
    assert!(
        dead["disk"]["oldest_seconds"]
            .as_f64()
            .is_some_and(|age| age >= 0.0),
        "{dead}"
    );
    assert!(dead["queue"]["oldest_seconds"].is_null(), "{dead}");
    let in_memory = of(&status["sinks"], "forgetful");
    assert!(
        in_memory["queue"]["oldest_seconds"]
            .as_f64()
            .is_some_and(|age| age >= 0.0),
        "{in_memory}"
    );
    assert!(in_memory["disk"].is_null(), "{in_memory}");
    assert_eq!(of(&status["sinks"], "archive")["state"], "working");
    let sdk = of(&status["sources"], "sdk");
    assert_eq!(sdk["state"], "running");
    assert!(
        sdk["lag_seconds"].is_f64() && sdk["last_batch_seconds"].is_f64(),
        "{sdk}"
    );
    assert_eq!(status["ready"], true);
}
