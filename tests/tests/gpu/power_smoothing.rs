//! Power smoothing: settings and limits in base units for privileged users, and one reason for all others.

use std::collections::BTreeSet;

use pulsetrain_gpu::{GpuNotice, Reason};
use pulsetrain_tests::{FakeNvml, corpus, wait_until};

use crate::watch::{Point, Watch, config};

const FIRST: (&str, &str) = ("gpu.index", "0");

/// The metrics of power smoothing, without their common prefix.
const METRICS: [&str; 13] = [
    "activation_offset",
    "active_profile",
    "floor_limit",
    "floor_ratio",
    "lifetime_remaining",
    "power",
    "preset_profiles",
    "privilege_level",
    "ramp_down_hysteresis",
    "ramp_rate",
    "secondary_floor",
    "window_unit",
    "windows",
];

fn metric(name: &str) -> String {
    format!("gpu.power_smoothing.{name}")
}

#[test]
fn power_smoothing_values_are_in_base_units_for_a_privileged_reader() {
    let fake = FakeNvml::start("gb200");
    let watch = Watch::start(config(&fake));
    let of_profile = |number| {
        let profile = ("gpu.power_smoothing.profile", number);
        vec![("gpu.power_smoothing.setting", "profile"), profile]
    };
    let level = |level| vec![("gpu.power_smoothing.level", level)];
    let with = |mut labels: Vec<(&'static str, &'static str)>, more| {
        labels.push(more);
        labels
    };
    let up = ("gpu.power_smoothing.direction", "up");
    let down = ("gpu.power_smoothing.direction", "down");
    let average = |average| ("gpu.power_smoothing.moving_average", average);
    let admin = vec![("gpu.power_smoothing.setting", "admin_override")];
    for (name, labels, value, unit) in [
        ("power", level("ceiling"), 2700.0, "W"),
        ("power", level("floor"), 1350.0, "W"),
        ("power", level("primary_floor"), 1350.0, "W"),
        ("power", level("secondary_floor"), 900.0, "W"),
        ("power", level("min_activation_offset"), 50.0, "W"),
        ("power", level("min_activation_point"), 600.0, "W"),
        (
            "floor_limit",
            vec![("gpu.power_smoothing.bound", "max")],
            0.9,
            "1",
        ),
        (
            "floor_limit",
            vec![("gpu.power_smoothing.bound", "min")],
            0.0,
            "1",
        ),
        ("lifetime_remaining", vec![], 0.98, "1"),
        ("preset_profiles", vec![], 5.0, "{profile}"),
        ("active_profile", vec![], 1.0, "{profile}"),
        ("privilege_level", vec![], 2.0, "{level}"),
        ("window_unit", vec![], 0.1, "s"),
        ("floor_ratio", of_profile("4"), 0.5, "1"),
        ("ramp_rate", with(of_profile("0"), up), 500.0, "W/s"),
        ("ramp_rate", with(of_profile("1"), up), 1000.0, "W/s"),
        ("ramp_rate", with(of_profile("1"), down), 250.0, "W/s"),
        ("ramp_rate", with(admin, up), 750.0, "W/s"),
        ("ramp_down_hysteresis", of_profile("2"), 0.5, "s"),
        ("secondary_floor", of_profile("3"), 900.0, "W"),
        ("activation_offset", of_profile("0"), 100.0, "W"),
        (
            "windows",
            with(of_profile("0"), average("activation")),
            4.0,
            "{window}",
        ),
        (
            "windows",
            with(of_profile("0"), average("target")),
            8.0,
            "{window}",
        ),
    ] {
        let labels = with(labels, FIRST);
        let point = watch.wait_for(&metric(name), &labels, |_| true);
        assert!(
            (point.value - value).abs() < 1e-9,
            "{name} {labels:?} is {}",
            point.value
        );
        assert_eq!(point.unit, unit, "{name}");
    }
    for (feature, on) in [
        ("power_smoothing", 1.0),
        ("power_smoothing_immediate_ramp_down", 0.0),
        ("power_smoothing_delayed", 1.0),
    ] {
        let labels = [FIRST, ("gpu.feature", feature)];
        let point = watch.wait_for("gpu.feature.active", &labels, |_| true);
        assert_eq!(point.value, on, "{feature}");
    }
    let beyond = [FIRST, ("gpu.power_smoothing.profile", "5")];
    assert!(watch.points(&metric("ramp_rate"), &beyond).is_empty());
}

#[test]
fn unset_power_smoothing_setting_and_floor_above_ceiling_have_no_value() {
    let readings = "power_smoothing.lifetime_percent: 4096";
    let fake = FakeNvml::with(
        "gb200",
        &format!("gpus: {{count: 1, all: {{readings: {{{readings}}}}}}}"),
    );
    let watch = Watch::start(config(&fake));
    let admin = ("gpu.power_smoothing.setting", "admin_override");
    watch.wait_for(&metric("ramp_rate"), &[admin], |_| true);
    watch.wait_passes(3);
    let sent = watch.end();
    let overridden: BTreeSet<_> = sent
        .iter()
        .filter(|point| !point.ends)
        .filter(|point| {
            point
                .attributes
                .get(admin.0)
                .is_some_and(|setting| setting == admin.1)
        })
        .map(|point| (point.name.clone(), point.value.to_string()))
        .collect();
    assert_eq!(overridden, [(metric("ramp_rate"), "750".to_owned())].into());
    let lifetime = metric("lifetime_remaining");
    assert!(!sent.iter().any(|point| point.is(&lifetime, &[])));
    let why = [
        ("gpu.metric.name", lifetime.as_str()),
        ("gpu.unavailable.reason", "no_data"),
    ];
    let is_reason = |point: &Point| point.is("gpu.metric.unavailable", &why);
    assert!(sent.iter().any(is_reason), "the lifetime has its reason");
}

#[test]
fn power_smoothing_without_privileges_is_absent_and_reports_one_reason() {
    for capture in ["b200-580.105.08", "gb200-580.173.02", "gb300-580.173.02"] {
        let path = corpus(&format!("nvidia-smi/{capture}.tsv"));
        let text = std::fs::read_to_string(path).expect("a capture can be read");
        assert!(
            text.contains("power_smoothing\tInsufficient Permissions"),
            "{capture}"
        );
    }
    for scenario in ["b200x8", "gb200"] {
        let restricted = "gpus: {all: {readings: {power_smoothing.restricted: 1}}}";
        let fake = FakeNvml::with(scenario, restricted);
        let watch = Watch::start(config(&fake));
        let is_refused = |notice: &GpuNotice| {
            let GpuNotice::Unavailable { reason, metrics, .. } = notice else {
                return false;
            };
            let all = METRICS.map(metric);
            let has = |name: &String| metrics.iter().any(|metric| metric.name == *name);
            *reason == Reason::NoPermission && all.iter().all(has)
        };
        wait_until("the notice comes", || watch.notices().iter().any(is_refused));
        watch.wait_passes(3);
        assert_eq!(
            watch.notices().iter().filter(|notice| is_refused(notice)).count(),
            1
        );
        let sent = watch.end();
        let of_smoothing = |point: &&Point| point.name.starts_with("gpu.power_smoothing.");
        assert_eq!(
            sent.iter().find(of_smoothing).map(|point| &point.name),
            None,
            "{scenario}"
        );
    }
}
