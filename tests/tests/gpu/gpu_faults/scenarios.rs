//! The page of each GPU model: valid for promtool, only names of the registry, and the metrics that the model supports.
//!
//! `tests/golden/gpu/MODEL.txt` is the table of a model: each metric with the number of its series of GPU 0, or with the reason
//! why there are none. `UPDATE_GOLDEN=1` writes it; a change of the table is a change that users see.
//! `tests/fake-nvml/README.md` has the sources for the metrics of the models, and `tests/tests/gpu/captures.rs` compares values
//! with captures of real GPUs.

use std::{collections::BTreeMap, env, fmt::Write, fs, path::Path};

use pulsetrain_semconv::{Instrument, Metric, metric};
use pulsetrain_tests::{FakeNvml, Folder, Judge, promtool_check, some_or_return, wait_until};

use crate::gpu_faults::{
    page::{fetch, samples},
    world::start_agent,
};

type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// A scenario with a model, and its number of GPUs.
const MODELS: [(&str, u32); 9] = [
    ("a100x8", 8),
    ("b200x8", 8),
    ("gb200", 4),
    ("geforce", 1),
    ("gh200", 1),
    ("h100x8", 8),
    ("l40s", 2),
    ("mig", 2),
    ("later_field_ids", 8),
];

#[test]
fn page_of_each_gpu_model_is_valid_and_has_its_expected_series() {
    let prometheus = some_or_return!(Judge::Prometheus.require_or_skip());
    for (model, gpus) in MODELS {
        let fake = FakeNvml::with(model, "");
        fake.run_from(0.0);
        let (folder, page, health) = (
            Folder::new(),
            pulsetrain_tests::free_port(),
            pulsetrain_tests::free_port(),
        );
        let agent = start_agent(&folder, (page, health), &fake.library(), "both");
        let mut text = String::new();
        let mut tables = Vec::new();
        wait_until(
            &format!("the page of {model} has its last GPU, and two passes agree"),
            || {
                text = fetch(page);
                let last = format!("gpu_index=\"{}\"", gpus - 1);
                let complete = text
                    .lines()
                    .any(|line| line.starts_with("gpu_memory_used_bytes") && line.contains(&last));
                let table = table(&samples(&text));
                // Performance counters and distributions need several passes.
                let stays = complete
                    && tables.len() >= 12
                    && tables.iter().rev().take(6).all(|earlier| *earlier == table);
                tables.push(table);
                stays
            },
        );
        let verdict = promtool_check(&prometheus, text.as_bytes());
        assert!(verdict.status.success(), "{model}: {verdict:?}");
        assert_registered(model, &samples(&text));
        assert_table(model, tables.last().expect("there is one"));
        agent.stop_well();
    }
}

/// Panics if a series has a name or a label that is not in the registry.
pub(super) fn assert_registered(model: &str, samples: &Samples) {
    for (name, labels) in samples.keys() {
        if name == "target_info" {
            continue;
        }
        let found = metric::ALL.iter().find(|own| names(own).any(|own| own == *name));
        let definition = found.unwrap_or_else(|| panic!("{model}: {name} is in no registry"));
        for label in labels.keys() {
            let is_own = definition
                .attributes
                .iter()
                .any(|own| own.attribute.name.replace('.', "_") == *label);
            // The standard attributes of a component are on all of its series.
            let is_component =
                name.starts_with("hw_") && (label.starts_with("hw_") || label.starts_with("gpu_"));
            let is_of_all =
                ["le", "host_name", "instance", "job", "service_instance_id"].contains(&label.as_str());
            assert!(
                is_own || is_of_all || is_component,
                "{model}: {name} has the label {label}"
            );
        }
    }
}

/// Returns the names of a metric on a page.
fn names(metric: &Metric) -> impl Iterator<Item = String> {
    let parts: &[&str] = match metric.instrument {
        Instrument::Histogram => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    parts
        .iter()
        .map(|part| format!("{}{part}", metric.prometheus_name))
}

/// Returns the table of GPU 0: one line per metric.
pub(super) fn table(samples: &Samples) -> String {
    let mut metrics: BTreeMap<&str, String> = BTreeMap::new();
    for own in metric::ALL.iter().filter(|own| own.name.starts_with("gpu.")) {
        let name = names(own).last().expect("it has a name");
        let of_first =
            |labels: &BTreeMap<String, String>| labels.get("gpu_index").is_some_and(|index| index == "0");
        let series = samples
            .keys()
            .filter(|(found, labels)| *found == name && of_first(labels))
            .count();
        let reason = samples.iter().find_map(|((found, labels), value)| {
            let is_it = found == "gpu_metric_unavailable"
                && of_first(labels)
                && labels
                    .get("gpu_metric_name")
                    .is_some_and(|metric| metric == own.name);
            (is_it && *value == 1.0).then(|| labels["gpu_unavailable_reason"].clone())
        });
        let line = match (series, reason) {
            (0, None) => continue,
            (0, Some(reason)) => reason,
            _ if own.name == "gpu.metric.unavailable" => continue,
            (series, None) => format!("{series} series"),
            (series, Some(reason)) => format!("{series} series, and {reason}"),
        };
        metrics.insert(own.name, line);
    }
    metrics.iter().fold(String::new(), |mut text, (name, line)| {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{name}: {line}");
        text
    })
}

pub(super) fn assert_table(model: &str, table: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/gpu")
        .join(format!("{model}.txt"));
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().expect("it has a folder")).expect("a folder can be made");
        fs::write(&golden, table).expect("the table can be written");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    let missing: Vec<_> = expected
        .lines()
        .filter(|line| !table.lines().any(|own| own == *line))
        .collect();
    let new: Vec<_> = table
        .lines()
        .filter(|line| !expected.lines().any(|own| own == *line))
        .collect();
    assert!(
        missing.is_empty() && new.is_empty(),
        "tests/golden/gpu/{model}.txt is out of date; write it with `UPDATE_GOLDEN=1 cargo test --workspace --all-features \
         --locked --test gpu -- gpu_faults`. Expected {missing:#?}, found {new:#?}"
    );
}
