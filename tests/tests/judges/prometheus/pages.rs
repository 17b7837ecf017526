//! Every page can be parsed, for any data from clients: by a strict parser of the specifications, by promtool and by
//! Prometheus.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use proptest::prelude::*;
use prost::Message;
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, Delivery, Sink};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink, PrometheusStore, Translation};
use pulsetrain_tests::{
    Exposition, Judge, Prometheus, promtool_check, read_page, some_or_return, wait_until,
};

use crate::prometheus::{endpoint::Endpoint, odd_metrics::Bytes};

/// Returns the `Accept` headers of all pages: format, its media type, and whether it may have names in UTF-8.
pub(crate) fn accepts() -> Vec<(Exposition, String, bool)> {
    const PROTOBUF: &str =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let types = [
        (Exposition::Text, "text/plain;version=0.0.4"),
        (Exposition::Text, "text/plain;version=1.0.0"),
        (
            Exposition::OpenMetrics,
            "application/openmetrics-text;version=1.0.0",
        ),
        (Exposition::Protobuf, PROTOBUF),
    ];
    let escaping = ["allow-utf-8", "underscores", "dots", "values"];
    let all = types.iter().flat_map(|(format, media)| {
        escaping.map(|escaping| {
            let accept = format!("{media};escaping={escaping}");
            (*format, accept, escaping == "allow-utf-8")
        })
    });
    all.collect()
}

fn assert_every_page_is_valid(store: &PrometheusStore) {
    for (format, accept, utf8) in accepts() {
        let mut page = Vec::new();
        store.write_page(&accept, &mut page);
        if let Err(error) = read_page(&page, format, utf8) {
            panic!("{accept}: {error}\n{}", String::from_utf8_lossy(&page));
        }
    }
}

fn deliver(sink: &mut PrometheusSink, batch: &Batch) -> Delivery {
    let delivered = pin!(sink.deliver(batch));
    match delivered.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(delivery) => delivery,
        Poll::Pending => panic!("the sink waits for something"),
    }
}

/// Delivers messages generated from bytes until the bytes are consumed.
fn fill(sink: &mut PrometheusSink, bytes: &mut Bytes<'_>, mut each: impl FnMut(&PrometheusSink)) {
    for _ in 0..3 {
        let message = bytes.metrics().encode_to_vec();
        deliver(sink, &Batch::new(Signal::Metrics, 1, message));
        each(sink);
        if bytes.is_empty() {
            return;
        }
    }
}

#[test]
fn exposition_checker_rejects_invalid_pages() {
    let text = [
        "a 1\n",
        "# TYPE a gauge\na 1",
        "# TYPE a gauge\na 1\n# HELP a x\n",
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 2\n",
        "# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n",
        "# TYPE a gauge\na{__name__=\"b\"} 1\n",
        "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"1\"} 2\n",
        "# TYPE a gauge\na{x=\"\\q\"} 1\n",
        "# TYPE a gauge\na{x.y=\"1\"} 1\n",
        "# TYPE a gauge\na one\n",
        "# TYPE a counter\na -1\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n# TYPE h_count gauge\nh_count{a=\"1\"} 1\n",
        "# TYPE s summary\ns{quantile=\"2\"} 1\ns_sum 1\ns_count 1\n",
    ];
    let open_metrics = [
        "# TYPE a gauge\na 1\n",
        "# TYPE a counter\na_total 1\n# TYPE a_total gauge\na_total 1\n# EOF\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_count 1\nh_sum 1\n# EOF\n",
        "# TYPE h histogram\nh_bucket{le=\"-1.0\"} 1\nh_bucket{le=\"+Inf\"} 1\nh_count 1\nh_sum 1\n# EOF\n",
        "# TYPE target_info gauge\n# UNIT target_info s\ntarget_info 1\n# EOF\n",
        "# TYPE a gauge\na 1 # {x=\"1\"} 1\n# EOF\n",
    ];
    let all = (text.map(|page| (page, Exposition::Text)).into_iter())
        .chain(open_metrics.map(|page| (page, Exposition::OpenMetrics)));
    for (page, format) in all {
        let read = read_page(page.as_bytes(), format, false);
        assert!(read.is_err(), "{format:?} {page:?}: {read:?}");
    }
    let quoted = b"# TYPE \"a.b\" gauge\n{\"a.b\",\"x.y\"=\"1\"} 1\n";
    assert!(read_page(quoted, Exposition::Text, false).is_err());
    assert_eq!(
        read_page(quoted, Exposition::Text, true).map(|families| families.len()),
        Ok(1)
    );
    assert!(
        read_page(b"\x03\x0a\x01a", Exposition::Protobuf, false).is_err(),
        "no metric"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_page_is_valid_for_arbitrary_input(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        let mut bytes = Bytes(&bytes);
        let mut sink = PrometheusSink::new(&bytes.config());
        fill(&mut sink, &mut bytes, |sink| assert_every_page_is_valid(&sink.store()));
    }
}

/// As [`every_page_is_valid_for_arbitrary_input`], checked with the programs themselves.
#[test]
fn promtool_and_prometheus_accept_every_page_for_arbitrary_input() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    for (seed, translation) in [
        (1, Translation::UnderscoreEscapingWithSuffixes),
        (2, Translation::NoTranslation),
    ] {
        let mut endpoint = Endpoint::start_with(PrometheusConfig {
            translation,
            ..PrometheusConfig::default()
        });
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(600).collect();
            fill(endpoint.sink(), &mut Bytes(&bytes), |_| {});
        }
        let target = endpoint.address();
        let scrapers = [
            (
                "native",
                Prometheus::start(&program, &[("ours", target.clone())], &[]),
            ),
            (
                "text",
                Prometheus::start_without_native_histograms(&program, &[("ours", target.clone())]),
            ),
            (
                "legacy",
                Prometheus::start_without_utf8(&program, &[("ours", target.clone())]),
            ),
        ];
        for (name, scraper) in &scrapers {
            wait_until("it has scraped", || scraper.value("up").is_some());
            let errors = scraper.scrape_errors();
            assert_eq!(
                scraper.value("up"),
                Some(1.0),
                "{name} {translation:?}: {errors:?}"
            );
            assert!(
                scraper.value("scrape_samples_scraped") > Some(100.0),
                "{name} {translation:?}"
            );
        }
        let mut page = Vec::new();
        endpoint.sink().store().write_page("", &mut page);
        let checked = promtool_check(&program, &page);
        // Exit code 3 is for names that violate promtool's conventions.
        let error = String::from_utf8_lossy(&checked.stderr);
        assert!(
            matches!(checked.status.code(), Some(0 | 3)),
            "{translation:?}: {error}"
        );
    }
}
