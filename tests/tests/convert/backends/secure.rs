//! Stores with TLS: one with a private certificate authority, one that requires a client certificate, one that requires a
//! token. Fakes, and a real Tempo, Jaeger and Prometheus.

use std::path::Path;

use pulsetrain_tests::{
    Answer, Certificates, FakeEndpoint, Items, Jaeger, Judge, Prometheus, Tempo, TlsFront, some_or_return,
    wait_until,
};

use crate::backends::world::{Conversion, Steps, exists, problems, protobuf, trace_id};

const ID: &str = "5e000000000000000000000000000001";

/// The arguments that query each store, and its responses.
pub(crate) const STORES: [(&str, &[&str], &[&str]); 3] = [
    (
        "--tempo",
        &["--trace-id", ID],
        &["\x0a\x09\x0a\x07\x12\x05\x12\x03\x2a\x01a"],
    ),
    (
        "--jaeger",
        &["--trace-id", ID],
        &[
            r#"{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5e000000000000000000000000000001","spanId":"5e00000000000001","name":"a"}]}]}]}}"#,
        ],
    ),
    (
        "--prometheus",
        &["--match", "up"],
        &[
            // The metadata of the metrics, and then the samples.
            r#"{"status":"success","data":{}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[[1792000000,"1"]]}]}}"#,
        ],
    ),
];

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

fn tls_front_of(store: &FakeEndpoint, certificates: &Certificates, asks_for_client: bool) -> TlsFront {
    front_of(&store.url(), certificates, asks_for_client)
}

fn front_of(url: &str, certificates: &Certificates, asks_for_client: bool) -> TlsFront {
    let address = url.strip_prefix("http://").expect("the store itself is plain");
    TlsFront::start(certificates, asks_for_client, address)
}

/// Queries a store through a TLS proxy that requires a client certificate: with a valid certificate, with the authority or the
/// certificate of another authority, and without a certificate. Returns the result of the first.
fn asked_by_tls(store: &str, url: &str, what: &[&str]) -> Items {
    let (certificates, stranger) = (Certificates::generate(), Certificates::generate());
    let front = front_of(url, &certificates, true);
    let url = front.url();
    let (authority, other) = (certificates.authority(), stranger.authority());
    let ((certificate, key), (strange, strange_key)) = (certificates.client(), stranger.client());
    let own = [
        "--client-certificate",
        path(&certificate),
        "--client-key",
        path(&key),
    ];
    let foreign = [
        "--client-certificate",
        path(&strange),
        "--client-key",
        path(&strange_key),
    ];
    for (ca, who, words) in [
        (&other, &own[..], "--ca"),
        (&authority, &[], "--client-certificate"),
        (&authority, &foreign, "--client-certificate"),
    ] {
        let asked = [&[store, &url, "--ca", path(ca)], who, what].concat();
        Conversion::new(&asked)
            .run("out.jsonl")
            .expect_code(1)
            .expect_words(&["cannot reach", words]);
    }
    let asked = [&[store, &url, "--ca", path(&authority)], &own[..], what].concat();
    Conversion::new(&asked).items()
}

#[test]
fn tempo_behind_mutual_tls_returns_every_step() {
    let program = some_or_return!(Tempo::program());
    let tempo = Tempo::start(&program);
    let steps = Steps::new("trainer", 40);
    tempo.push(&steps.otlp());
    let all = "{ name = \"train.step\" }";
    wait_until("Tempo finds every step", || tempo.search(all).len() == 40);
    let asked = asked_by_tls("--tempo", &tempo.url(), &["--query", all]);
    asked.assert_same(&steps.items());
}

#[test]
fn jaeger_behind_mutual_tls_returns_every_step() {
    let program = some_or_return!(Judge::Jaeger.require_or_skip());
    let jaeger = Jaeger::start(&program);
    let steps = Steps::new("trainer", 40);
    jaeger.push(&steps.otlp());
    wait_until("Jaeger has the last step", || {
        jaeger.trace(&trace_id(39)).is_some()
    });
    let asked = asked_by_tls("--jaeger", &jaeger.url(), &["--service", "trainer"]);
    asked.assert_same(&steps.items());
}

#[test]
fn store_requests_use_the_configured_ca_client_certificate_and_token() {
    let certificates = Certificates::generate();
    let (authority, (certificate, key)) = (certificates.authority(), certificates.client());
    for (store, what, says) in STORES {
        let script = says.repeat(2).into_iter();
        let script = script.map(|says| Answer::Say(says.to_owned()));
        let server = FakeEndpoint::start(script, Answer::Refuse(500));
        for asks_for_client in [false, true] {
            let front = tls_front_of(&server, &certificates, asks_for_client);
            let url = front.url();
            let mut arguments = vec![store, &url, "--ca", path(&authority)];
            arguments.extend(what);
            arguments.extend(["--header", "Authorization: Bearer secret", "--tenant", "team"]);
            if asks_for_client {
                arguments.extend(["--client-certificate", path(&certificate)]);
                arguments.extend(["--client-key", path(&key)]);
            }
            let conversion = Conversion::new(&arguments);
            conversion.run("out.jsonl").expect_code(0);
            assert!(exists(&conversion.path("out.jsonl")), "{store}");
        }
        let received = server.received();
        assert_eq!(received.len(), 2 * says.len(), "{store}");
        for request in received {
            assert_eq!(request.headers["authorization"], "Bearer secret", "{store}");
            assert_eq!(request.headers["x-scope-orgid"], "team", "{store}");
        }
    }
}

#[test]
fn tls_failures_of_store_requests_are_reported_with_the_fix() {
    let certificates = Certificates::generate();
    let server = FakeEndpoint::start([], Answer::Refuse(500));
    let (open, asking) = (
        tls_front_of(&server, &certificates, false),
        tls_front_of(&server, &certificates, true),
    );
    let (stranger, authority) = (Certificates::generate(), certificates.authority());
    let plain = server.url().replace("http://", "https://");
    let ca = path(&authority);
    let (other, (certificate, _)) = (stranger.authority(), certificates.client());
    for (url, more, words) in [
        (open.url(), vec!["--ca", path(&other)], "--ca"),
        (asking.url(), vec!["--ca", ca], "--client-certificate"),
        (plain, vec!["--ca", ca], "http://"),
    ] {
        let arguments = [&["--tempo", &url, "--trace-id", ID], &more[..]].concat();
        let printed = problems(&Conversion::new(&arguments).run("out.jsonl").expect_code(1));
        assert!(
            printed.contains("cannot reach") && printed.contains(words),
            "{printed}"
        );
    }
    assert_eq!(server.received().len(), 0);
    for (more, words) in [
        (vec!["--ca", "/dev/null"], "/dev/null"),
        (vec!["--client-certificate", path(&certificate)], "--client-key"),
    ] {
        let url = open.url();
        let arguments = [&["--tempo", &url, "--trace-id", ID], &more[..]].concat();
        Conversion::new(&arguments)
            .run("out.jsonl")
            .expect_code(2)
            .expect_words(&[words]);
    }
}

#[test]
fn prometheus_behind_mutual_tls_returns_its_samples() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let prometheus = Prometheus::start(&program, &[], &[]);
    let time = Steps::new("trainer", 1).first;
    prometheus.push(&protobuf(&format!(
        r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"train.loss","gauge":{{"dataPoints":[{{"timeUnixNano":"{time}","asDouble":2.5}}]}}}}]}}]}}]}}"#
    )));
    wait_until("Prometheus has the loss", || {
        prometheus.series("train_loss").len() == 1
    });
    let asked = asked_by_tls("--prometheus", &prometheus.url(), &["--match", "train_loss"]);
    let values = asked.values("train.loss");
    assert_eq!(values.first().map(|(_, value)| *value), Some(2.5), "{values:?}");
}
