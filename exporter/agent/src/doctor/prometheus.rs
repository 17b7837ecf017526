//! Checks whether a Prometheus has Pulsetrain's series, and whether they have their own `job` and `instance`.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_backends::{BackendError, BackendOptions, PrometheusBackend};
use pulsetrain_net::client::ClientTls;

use super::finding::{Findings, Subject};
use crate::failure::Failure;

/// Counts Pulsetrain's series by the job that they are stored with, and by their own. A scrape without `honor_labels`
/// gives a series the job and the instance of its target, and keeps its own as `exported_job` and `exported_instance`.
const SERIES: &str = r#"count by (job, exported_job) ({__name__=~"(train|gpu|hw|pulsetrain)[._].+"})"#;

/// Reports the Pulsetrain series of a Prometheus.
pub(super) async fn check(url: &str, timeout: Duration, findings: &mut Findings) -> Result<(), Failure> {
    let options = BackendOptions {
        headers: Vec::new(),
        timeout,
        max_traces: 0,
        tls: ClientTls::default(),
        variable: |name| std::env::var(name).ok(),
    };
    let prometheus = PrometheusBackend::new(url, &options).map_err(Failure::usage)?;
    let place = Subject::Prometheus(url.trim_end_matches('/').to_owned());
    report(place, prometheus.labels(SERIES).await, findings);
    Ok(())
}

fn report(
    place: Subject,
    answer: Result<Vec<BTreeMap<String, String>>, BackendError>,
    findings: &mut Findings,
) {
    let groups = match answer {
        Ok(groups) => groups,
        Err(error) => {
            // The advice of the error is about options of convert.
            let advice =
                "start Prometheus there, or give the address of its API, such as http://localhost:9090";
            return findings.wrong(place, error.cause().to_string(), advice);
        }
    };
    if groups.is_empty() {
        return findings.wrong(
            place,
            "has no series of Pulsetrain at present",
            "open its page /targets: the agent's page must be a target that is up, with honor_labels: true",
        );
    }
    let mut jobs = Vec::new();
    let mut renamed = BTreeMap::<&str, Vec<&str>>::new();
    for group in &groups {
        let label = |name| group.get(name).map(String::as_str).unwrap_or_default();
        match label("exported_job") {
            "" => jobs.push(label("job")),
            own => renamed.entry(label("job")).or_default().push(own),
        }
    }
    for (target, own) in renamed {
        findings.wrong(
            place.clone(),
            format!(
                "replaces job and instance of the series of {}: all have job={target:?}",
                own.join(", ")
            ),
            format!("set honor_labels: true at job_name: {target} in scrape_configs"),
        );
    }
    if !jobs.is_empty() {
        findings.fine(place, format!("has series of the jobs {}", jobs.join(", ")));
    }
}
