//! The bridge from a program's own `prometheus::Registry` to the page, under its own names.

use prometheus::{
    Registry,
    proto::{Metric, MetricFamily, MetricType},
};

use super::{ExtraFamilies, ExtraFamily, ExtraKind, ExtraMetric, ExtraValue};

/// The families of a registry of the `prometheus` crate.
///
/// ```
/// # use pulsetrain_prometheus::{ExtraFamilies, RegistryBridge};
/// let registry = prometheus::Registry::new();
/// let requests = prometheus::IntCounter::new("requests_total", "Requests so far.")?;
/// registry.register(Box::new(requests.clone()))?;
/// requests.inc();
///
/// let extra: Vec<Box<dyn ExtraFamilies>> = vec![Box::new(RegistryBridge::new(registry))];
/// assert_eq!(extra[0].families()[0].name, "requests_total");
/// # Ok::<(), prometheus::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RegistryBridge {
    registry: Registry,
}

impl RegistryBridge {
    /// Returns a bridge to `registry`, which is read at each scrape.
    pub fn new(registry: Registry) -> Self {
        Self { registry }
    }
}

impl ExtraFamilies for RegistryBridge {
    fn families(&self) -> Vec<ExtraFamily> {
        self.registry.gather().iter().filter_map(family).collect()
    }
}

fn family(family: &MetricFamily) -> Option<ExtraFamily> {
    let kind = match family.get_field_type() {
        MetricType::COUNTER => ExtraKind::Counter,
        MetricType::GAUGE => ExtraKind::Gauge,
        MetricType::HISTOGRAM => ExtraKind::Histogram,
        MetricType::SUMMARY => ExtraKind::Summary,
        // The crate creates none, and has no value accessor for one.
        MetricType::UNTYPED => return None,
    };
    Some(ExtraFamily {
        name: family.name().to_owned(),
        help: family.help().to_owned(),
        kind,
        metrics: family.get_metric().iter().map(|one| metric(kind, one)).collect(),
    })
}

fn metric(kind: ExtraKind, metric: &Metric) -> ExtraMetric {
    let labels = metric.get_label().iter();
    ExtraMetric {
        labels: labels
            .map(|label| (label.name().to_owned(), label.value().to_owned()))
            .collect(),
        value: value(kind, metric),
    }
}

fn value(kind: ExtraKind, metric: &Metric) -> ExtraValue {
    match kind {
        ExtraKind::Counter => ExtraValue::Number(metric.get_counter().get_value()),
        ExtraKind::Gauge | ExtraKind::Untyped | ExtraKind::Info => {
            ExtraValue::Number(metric.get_gauge().get_value())
        }
        ExtraKind::Histogram => {
            let histogram = metric.get_histogram();
            let buckets = histogram.get_bucket().iter();
            ExtraValue::Histogram {
                count: histogram.get_sample_count(),
                sum: histogram.get_sample_sum(),
                buckets: buckets
                    .map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()))
                    .collect(),
            }
        }
        ExtraKind::Summary => {
            let summary = metric.get_summary();
            let quantiles = summary.get_quantile().iter();
            ExtraValue::Summary {
                count: summary.sample_count(),
                sum: summary.sample_sum(),
                quantiles: quantiles.map(|entry| (entry.quantile(), entry.value())).collect(),
            }
        }
    }
}
