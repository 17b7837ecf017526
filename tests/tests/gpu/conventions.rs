//! The standard names, compared with OpenTelemetry's own definitions: every entry of our registry, and every series of the fake
//! H100.

use std::{collections::BTreeSet, path::Path};

use pulsetrain_gpu::GpuSemconv;
use pulsetrain_semconv::{AttributeKind, Instrument, Metric, Number, Requirement, metric};
use pulsetrain_tests::FakeNvml;

use crate::{
    upstream::Conventions,
    watch::{Point, Watch, config_with},
};

/// Upstream metrics that NVML does not provide: the maximum speed of a fan in revolutions, and the bandwidth utilization of an
/// NVLink.
const NOT_TOLD: [&str; 2] = ["hw.fan.speed.limit", "hw.network.bandwidth.utilization"];
/// Values of ours in addition to the listed values of an upstream attribute; the upstream list is open, and GPUs have more
/// engines.
const OWN_VALUES: [(&str, &str); 2] = [("hw.gpu.task", "jpeg"), ("hw.gpu.task", "ofa")];

#[test]
fn every_hw_registry_entry_matches_the_upstream_conventions() {
    let upstream = Conventions::read();
    let ours: Vec<&Metric> = metric::ALL
        .iter()
        .copied()
        .filter(|own| is_hw(own.name))
        .collect();
    let names: BTreeSet<&str> = ours.iter().map(|own| own.name).chain(NOT_TOLD).collect();
    assert_eq!(names, upstream.names());
    let faults: Vec<String> = ours.iter().flat_map(|own| entry_faults(own, &upstream)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_hw_series_of_the_fake_h100_matches_the_upstream_conventions() {
    let upstream = Conventions::read();
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let watch = Watch::start(config_with(&fake, GpuSemconv::Hw));
    // A server H100 has no fan; its links do not count packets.
    let unseen = ["hw.fan.speed", "hw.fan.speed_ratio", "hw.network.packets"];
    let expected: BTreeSet<&str> = metric::ALL
        .iter()
        .map(|own| own.name)
        .filter(|name| is_hw(name) && !unseen.contains(name))
        .collect();
    for name in &expected {
        watch.wait_any(name, &[]);
    }
    let sent = watch.end();
    let points: Vec<&Point> = sent.iter().filter(|point| is_hw(&point.name)).collect();
    let faults: BTreeSet<String> = points
        .iter()
        .flat_map(|point| point_faults(point, &upstream))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    assert_documented(&points);
    let seen: BTreeSet<&str> = points.iter().map(|point| point.name.as_str()).collect();
    assert_eq!(seen, expected);
}

/// The conventions require documentation of the possible error types.
fn assert_documented(points: &[&Point]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exporter/gpu/GPU.md");
    let page = std::fs::read_to_string(page).expect("the page about GPUs can be read");
    let kinds = points
        .iter()
        .filter_map(|point| point.attributes.get("error.type"));
    for kind in kinds.collect::<BTreeSet<_>>() {
        let is_code = kind
            .strip_prefix("xid_")
            .is_some_and(|code| code.parse::<u32>().is_ok());
        let written = if is_code { "xid_<code>" } else { kind };
        assert!(page.contains(&format!("`{written}`")), "{kind} is not documented");
    }
}

fn is_hw(name: &str) -> bool {
    name.starts_with("hw.")
}

/// Returns the differences between an entry and its upstream definition.
fn entry_faults(own: &Metric, upstream: &Conventions) -> Vec<String> {
    let definition = upstream.metric(own.name);
    let mut faults = differences(
        own.name,
        [
            (own.unit, &definition.unit),
            (instrument(own.instrument), &definition.instrument),
            (value_type(own.number), &definition.value_type),
        ],
    );
    for (name, required) in &definition.attributes {
        let used = own.attributes.iter().find(|used| used.attribute.name == name);
        let is_required = used.is_some_and(|used| used.requirement == Requirement::Required);
        if *required && !is_required {
            faults.push(format!("{}: {name} is not required", own.name));
        }
    }
    for used in own.attributes {
        let name = used.attribute.name;
        if !definition.attributes.contains_key(name) {
            faults.push(format!("{}: upstream has no {name}", own.name));
        }
        if let AttributeKind::Enum(values) = used.attribute.kind {
            faults.extend(
                values
                    .iter()
                    .filter_map(|value| value_fault(name, value, upstream)),
            );
        }
    }
    faults
}

/// Returns the differences between a point and its upstream definition. Additional attributes are allowed if upstream has them:
/// those of a GPU are on all of its parts.
fn point_faults(point: &Point, upstream: &Conventions) -> Vec<String> {
    let definition = upstream.metric(&point.name);
    let mut faults = differences(
        &point.name,
        [
            (point.unit.as_str(), &definition.unit),
            (point.instrument, &definition.instrument),
        ],
    );
    // A point that ends its series has no value.
    if !point.ends {
        faults.extend(differences(
            &point.name,
            [(point.value_type, &definition.value_type)],
        ));
    }
    for (name, required) in &definition.attributes {
        if *required && !point.attributes.contains_key(name) {
            faults.push(format!("{}: a series without {name}", point.name));
        }
    }
    let values = point.attributes.iter();
    faults.extend(values.filter_map(|(name, value)| value_fault(name, value, upstream)));
    faults
}

/// Returns the error in an attribute value, or `None` if upstream lists it; a `hw.*` attribute that upstream does not have is
/// an error.
fn value_fault(attribute: &str, value: &str, upstream: &Conventions) -> Option<String> {
    if is_hw(attribute) && !upstream.has(attribute) {
        return Some(format!("{attribute}: no such attribute upstream"));
    }
    let is_known = upstream.lists(attribute, value) || OWN_VALUES.contains(&(attribute, value));
    (!is_known).then(|| format!("{attribute}: upstream has no {value:?}"))
}

fn differences<const N: usize>(name: &str, pairs: [(&str, &String); N]) -> Vec<String> {
    let differ = pairs.iter().filter(|(ours, theirs)| ours != theirs);
    differ
        .map(|(ours, theirs)| format!("{name}: {ours:?} and not {theirs:?}"))
        .collect()
}

fn instrument(instrument: Instrument) -> &'static str {
    match instrument {
        Instrument::Counter => "counter",
        Instrument::UpDownCounter => "updowncounter",
        Instrument::Gauge => "gauge",
        Instrument::Histogram => "histogram",
    }
}

fn value_type(number: Number) -> &'static str {
    match number {
        Number::Int => "int",
        Number::Double => "double",
    }
}
