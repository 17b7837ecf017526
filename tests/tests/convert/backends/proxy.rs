//! Stores that can be reached only through a proxy of the environment.

use pulsetrain_tests::{Answer, FakeEndpoint, Finished, ForwardProxy};

use crate::backends::{
    secure::STORES,
    world::{Conversion, exists},
};

/// A store that no resolver knows.
const STORE: &str = "http://store.invalid:3200";

fn convert(url: &str, store: &str, what: &[&str], variables: &[(&str, &str)]) -> (Conversion, Finished) {
    let conversion = Conversion::new(&[&[store, url], what].concat());
    let finished = conversion.run_with("out.jsonl", variables);
    (conversion, finished)
}

#[test]
fn store_requests_go_through_the_proxy_of_the_environment() {
    for (store, what, answers) in STORES {
        let script = answers.iter().map(|answer| Answer::Say((*answer).to_owned()));
        let server = FakeEndpoint::start(script, Answer::Refuse(500));
        let proxy = ForwardProxy::start(&server.url());
        let (conversion, finished) = convert(STORE, store, what, &[("HTTP_PROXY", &proxy.url())]);
        finished.expect_code(0);
        assert!(exists(&conversion.path("out.jsonl")), "{store}");
        assert_eq!(server.received().len(), answers.len(), "{store}");
        for head in proxy.heads() {
            assert!(head.starts_with(&format!("GET {STORE}/")), "{head}");
        }
        for request in server.received() {
            assert_eq!(request.headers["host"], "store.invalid:3200", "{store}");
            assert_eq!(
                request.headers["proxy-authorization"], "Basic dXNlcjpwYXNz",
                "{store}"
            );
        }
    }
}

#[test]
fn no_proxy_and_loopback_stores_bypass_the_proxy() {
    for (store, what, answers) in STORES {
        let script = answers.iter().map(|answer| Answer::Say((*answer).to_owned()));
        let server = FakeEndpoint::start(script, Answer::Refuse(500));
        let proxy = ForwardProxy::start(&server.url());
        let url = proxy.url();
        for excluded in ["*.invalid", ".invalid", "store.invalid"] {
            let variables = [("HTTP_PROXY", url.as_str()), ("NO_PROXY", excluded)];
            let (_, finished) = convert(STORE, store, what, &variables);
            finished
                .expect_code(1)
                .expect_words(&["cannot reach", "dns error"]);
        }
        let (_, finished) = convert(&server.url(), store, what, &[("HTTP_PROXY", &url)]);
        finished.expect_code(0);
        assert_eq!(proxy.heads(), [""; 0], "{store}");
    }
}

#[test]
fn unusable_proxy_is_reported_with_its_variable() {
    let (store, what, _) = STORES[0];
    let dead = [("HTTP_PROXY", "http://127.0.0.1:1")];
    let (_, finished) = convert(STORE, store, what, &dead);
    let words = [
        "through the proxy http://127.0.0.1:1",
        "check HTTPS_PROXY and HTTP_PROXY",
    ];
    finished.expect_code(1).expect_words(&words);
    let (_, finished) = convert(
        STORE,
        store,
        what,
        &[("HTTP_PROXY", "socks4://me:s3cret@proxy:1")],
    );
    assert!(!finished.stderr.contains("s3cret"), "{}", finished.stderr);
    finished
        .expect_code(2)
        .expect_words(&["HTTP_PROXY is not the URL of an HTTP or SOCKS5 proxy"]);
}
