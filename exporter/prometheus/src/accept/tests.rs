use http::HeaderValue;

use super::*;

fn headers(name: HeaderName, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
}

fn content_type(accept: &str) -> String {
    ResponseFormat::to(&headers(ACCEPT, accept)).content_type()
}

#[test]
fn prometheus_accept_header_selects_the_requested_format() {
    // Headers of Prometheus 3.x (scrape/scrape.go): default, with native histograms, with protobuf forced,
    // without UTF-8 names.
    let cases = [
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
        ),
        (
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=allow-utf-8",
        ),
        (
            "text/plain;version=1.0.0;escaping=dots;q=0.3,text/plain;version=0.0.4;q=0.2",
            "text/plain; version=1.0.0; charset=utf-8; escaping=dots",
        ),
        (
            "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=0.0.4;q=0.3",
            "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=underscores",
        ),
    ];
    for (accept, expected) in cases {
        assert_eq!(content_type(accept), expected);
    }
}

#[test]
fn other_accept_headers_select_the_text_format() {
    let text = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    assert_eq!(ResponseFormat::to(&HeaderMap::new()).content_type(), text);
    for accept in [
        "*/*",
        "text/html, application/xhtml+xml;q=0.9, */*;q=0.8",
        "application/json",
        "application/openmetrics-text;version=2.0.0",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text",
        "application/openmetrics-text;version=1.0.0;q=0",
        ";;;=,,q=1",
    ] {
        assert_eq!(content_type(accept), text, "{accept}");
    }
}

#[test]
fn compression_is_the_preferred_one_of_the_client() {
    let cases = [
        ("gzip", Coding::Gzip),
        ("gzip, zstd", Coding::Zstd),
        ("zstd;q=0.5, gzip;q=0.8", Coding::Gzip),
        ("gzip;q=0", Coding::Identity),
        ("br, deflate", Coding::Identity),
        ("", Coding::Identity),
    ];
    for (accepted, expected) in cases {
        assert_eq!(
            Coding::to(&headers(ACCEPT_ENCODING, accepted)),
            expected,
            "{accepted}"
        );
    }
}
