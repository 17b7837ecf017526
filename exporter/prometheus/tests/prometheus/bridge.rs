//! Families of other origin on the page.

use pulsetrain_prometheus::{ExtraFamilies, ExtraFamily, ExtraKind, ExtraMetric, ExtraValue};

use crate::site::Site;

/// Three families, one with the name of a family of the store.
struct Own;

impl ExtraFamilies for Own {
    fn families(&self) -> Vec<ExtraFamily> {
        let gauge = |name: &str, value| ExtraFamily {
            name: name.to_owned(),
            help: "Of the program.".to_owned(),
            kind: ExtraKind::Gauge,
            metrics: vec![ExtraMetric {
                labels: vec![
                    ("b".to_owned(), "2\"".to_owned()),
                    ("a".to_owned(), "1".to_owned()),
                ],
                value: ExtraValue::Number(value),
            }],
        };
        vec![gauge("own", 7.0), gauge("g", 8.0), gauge("dotted.name", 9.0)]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn extra_families_are_exposed_exactly_once() {
    let mut site = Site::open(vec![Box::new(Own)]).await;
    site.fill("g", 1, 1.0).await;
    let page = site.get("/metrics", "").await;
    assert_eq!(
        page.text(),
        "# TYPE g gauge\ng{number=\"0\"} 1\n\
         # HELP own Of the program.\n# TYPE own gauge\nown{a=\"1\",b=\"2\\\"\"} 7\n\
         # HELP dotted_name Of the program.\n# TYPE dotted_name gauge\ndotted_name{a=\"1\",b=\"2\\\"\"} 9\n"
    );
    site.stop().await;
}

#[cfg(feature = "prometheus-bridge")]
#[tokio::test(flavor = "multi_thread")]
async fn registry_is_encoded_as_by_its_own_encoder() -> Result<(), Box<dyn std::error::Error>> {
    use prometheus::{Encoder, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};

    let registry = Registry::new();
    let requests = IntCounterVec::new(Opts::new("requests_total", "Requests \\ so far."), &["code"])?;
    let durations = HistogramVec::new(
        HistogramOpts::new("duration_seconds", "Time.").buckets(vec![0.1, 1.0]),
        &["path"],
    )?;
    registry.register(Box::new(requests.clone()))?;
    registry.register(Box::new(durations.clone()))?;
    requests.with_label_values(&["200"]).inc_by(3);
    requests.with_label_values(&["a\"b\n"]).inc();
    [0.05, 0.5, 5.0]
        .iter()
        .for_each(|value| durations.with_label_values(&["/"]).observe(*value));

    let mut site = Site::open(vec![Box::new(pulsetrain_prometheus::RegistryBridge::new(
        registry.clone(),
    ))])
    .await;
    site.fill("g", 1, 1.0).await;
    let page = site.get("/metrics", "").await;
    let mut theirs = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut theirs)?;
    let expected = format!(
        "# TYPE g gauge\ng{{number=\"0\"}} 1\n{}",
        String::from_utf8(theirs)?
    );
    assert_eq!(page.text(), expected);
    site.stop().await;
    Ok(())
}
