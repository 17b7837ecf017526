//! Requests and their responses.

use std::io::Read;

use pulsetrain_prometheus::{PrometheusConfig, PrometheusError, PrometheusSink};

use crate::site::{Site, free_port};

#[tokio::test(flavor = "multi_thread")]
async fn page_has_the_requested_format_and_compression() {
    let mut site = Site::open(Vec::new()).await;
    site.fill("g", 3, 0.5).await;
    let plain = site.get("/metrics", "").await;
    assert_eq!(plain.status, 200);
    assert_eq!(
        plain.text(),
        "# TYPE g gauge\ng{number=\"0\"} 0.5\ng{number=\"1\"} 0.5\ng{number=\"2\"} 0.5\n"
    );
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(plain.header("vary"), Some("accept, accept-encoding"));

    let open_metrics = "Accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8\r\n";
    let answer = site.get("/metrics?x=y", open_metrics).await;
    assert_eq!(
        answer.header("content-type"),
        Some("application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8")
    );
    assert_eq!(answer.text(), format!("{}# EOF\n", plain.text()));

    // As Prometheus 3.16 requests OpenMetrics 2.0 alone, which the page does not have: it is text by name and by content.
    let newer = "Accept: application/openmetrics-text;version=2.0.0;escaping=allow-utf-8;q=0.7,*/*;q=0.6\r\n";
    let answer = site.get("/metrics", newer).await;
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
    );
    assert_eq!(answer.text(), plain.text());

    let gzip = site.get("/metrics", "Accept-Encoding: gzip\r\n").await;
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    let mut inflated = String::new();
    flate2::read::GzDecoder::new(gzip.body.as_slice())
        .read_to_string(&mut inflated)
        .expect("gzip");
    assert_eq!(inflated, plain.text());

    let zstd = site.get("/metrics", "Accept-Encoding: gzip, zstd\r\n").await;
    assert_eq!(zstd.header("content-encoding"), Some("zstd"));
    assert_eq!(zstd::decode_all(zstd.body.as_slice()).expect("zstd"), plain.body);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn head_requests_unknown_paths_and_post_requests_are_answered() {
    let site = Site::open(Vec::new()).await;
    let head = site.ask("HEAD", "/metrics", "").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert!(
        head.header("content-type")
            .is_some_and(|value| value.starts_with("text/plain; version=0.0.4"))
    );
    let elsewhere = site.get("/", "").await;
    assert_eq!(
        (elsewhere.status, elsewhere.text()),
        (404, "nothing here; the metrics are at /metrics\n")
    );
    let post = site.ask("POST", "/metrics", "Content-Length: 0\r\n").await;
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(site.get("/metrics", "").await.text(), "");
    site.stop().await;
}

#[tokio::test]
async fn port_in_use_open_address_and_bad_path_are_reported() {
    let message = |config: PrometheusConfig| async move {
        let store = PrometheusSink::new(&config).store();
        let error: PrometheusError = config.bind(store, Vec::new()).err().expect("an error");
        error.to_string()
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let listen = taken.local_addr().expect("an address");
    let in_use = message(PrometheusConfig {
        listen: listen.into(),
        ..free_port()
    })
    .await;
    assert!(
        in_use.starts_with(&format!("cannot listen on {listen}: "))
            && in_use.contains("end the program that listens there"),
        "{in_use}"
    );

    let open = PrometheusConfig {
        listen: "0.0.0.0:0".parse().expect("an address"),
        ..free_port()
    };
    let refused = message(open.clone()).await;
    assert!(refused.contains("allow_remote"), "{refused}");
    let allowed = PrometheusConfig {
        exposure: pulsetrain_net::Exposure {
            allow_remote: true,
            ..Default::default()
        },
        ..open
    };
    let store = PrometheusSink::new(&allowed).store();
    assert!(allowed.bind(store, Vec::new()).is_ok());

    let path = message(PrometheusConfig {
        path: "metrics".into(),
        ..free_port()
    })
    .await;
    assert!(path.contains("starts with a slash"), "{path}");
}
