//! Stores behind TLS: one whose authority only the user knows, one that asks who comes, one that wants a token.

use std::path::Path;

use pulsetrain_tests::{Answer, Certificates, FakeEndpoint, TlsFront};

use crate::world::{Conversion, exists, problems};

const ID: &str = "5e000000000000000000000000000001";

/// What each store answers, and how it is asked.
const STORES: [(&str, &[&str], &[&str]); 3] = [
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
            // What its metrics are, and then the samples.
            r#"{"status":"success","data":{}}"#,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up"},"values":[[1792000000,"1"]]}]}}"#,
        ],
    ),
];

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary path is text")
}

fn behind(store: &FakeEndpoint, certificates: &Certificates, asks_for_client: bool) -> TlsFront {
    let url = store.url();
    let address = url.strip_prefix("http://").expect("the endpoint is plain");
    TlsFront::start(certificates, asks_for_client, address)
}

#[test]
fn every_store_is_asked_by_tls_with_the_users_authority_certificate_and_token() {
    let certificates = Certificates::generate();
    let (authority, (certificate, key)) = (certificates.authority(), certificates.client());
    for (store, what, says) in STORES {
        let script = says.repeat(2).into_iter();
        let script = script.map(|says| Answer::Say(says.to_owned()));
        let server = FakeEndpoint::start(script, Answer::Refuse(500));
        for asks_for_client in [false, true] {
            let front = behind(&server, &certificates, asks_for_client);
            let url = front.url();
            let mut arguments = vec![store, &url, "--ca", path(&authority)];
            arguments.extend(what);
            arguments.extend(["--header", "Authorization: Bearer secret", "--tenant", "team"]);
            if asks_for_client {
                arguments.extend(["--client-certificate", path(&certificate)]);
                arguments.extend(["--client-key", path(&key)]);
            }
            let conversion = Conversion::of(&arguments);
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
fn what_tls_refuses_is_said_with_what_to_do() {
    let certificates = Certificates::generate();
    let server = FakeEndpoint::start([], Answer::Refuse(500));
    let (open, asking) = (
        behind(&server, &certificates, false),
        behind(&server, &certificates, true),
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
        let said = problems(&Conversion::of(&arguments).run("out.jsonl").expect_code(1));
        assert!(said.contains("cannot reach") && said.contains(words), "{said}");
    }
    assert_eq!(server.received().len(), 0);
    for (more, words) in [
        (vec!["--ca", "/dev/null"], "/dev/null"),
        (vec!["--client-certificate", path(&certificate)], "--client-key"),
    ] {
        let url = open.url();
        let arguments = [&["--tempo", &url, "--trace-id", ID], &more[..]].concat();
        Conversion::of(&arguments)
            .run("out.jsonl")
            .expect_code(2)
            .expect_words(&[words]);
    }
}
