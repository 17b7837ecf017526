//! Power smoothing: settings and limits in base units for privileged users, and one reason for all others.

use std::collections::BTreeSet;

use pulsetrain_gpu::{GpuNotice, Reason};
use pulsetrain_tests::{corpus, wait_until};

use crate::watch::{Point, Watch};

const FIRST: (&str, &str) = ("gpu.index", "0");

/// The metrics of power smoothing, without their common prefix, and their units.
const METRICS: [(&str, &str); 13] = [
    ("activation_offset", "W"),
    ("active_profile", "{profile}"),
    ("floor_limit", "1"),
    ("floor_ratio", "1"),
    ("lifetime_remaining", "1"),
    ("power", "W"),
    ("preset_profiles", "{profile}"),
    ("privilege_level", "{level}"),
    ("ramp_down_hysteresis", "s"),
    ("ramp_rate", "W/s"),
    ("secondary_floor", "W"),
    ("window_unit", "s"),
    ("windows", "{window}"),
];

/// Series for a privileged reader, and their values.
const PRIVILEGED: &str = "\
gpu.power_smoothing.power{gpu.power_smoothing.level=ceiling} 2700
gpu.power_smoothing.power{gpu.power_smoothing.level=floor} 1350
gpu.power_smoothing.power{gpu.power_smoothing.level=primary_floor} 1350
gpu.power_smoothing.power{gpu.power_smoothing.level=secondary_floor} 900
gpu.power_smoothing.power{gpu.power_smoothing.level=min_activation_offset} 50
gpu.power_smoothing.power{gpu.power_smoothing.level=min_activation_point} 600
gpu.power_smoothing.floor_limit{gpu.power_smoothing.bound=max} 0.9
gpu.power_smoothing.floor_limit{gpu.power_smoothing.bound=min} 0
gpu.power_smoothing.lifetime_remaining 0.98
gpu.power_smoothing.preset_profiles 5
gpu.power_smoothing.active_profile 1
gpu.power_smoothing.privilege_level 2
gpu.power_smoothing.window_unit 0.1
gpu.power_smoothing.floor_ratio{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=4} 0.5
gpu.power_smoothing.ramp_rate{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=0, gpu.power_smoothing.direction=up} 500
gpu.power_smoothing.ramp_rate{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=1, gpu.power_smoothing.direction=up} 1000
gpu.power_smoothing.ramp_rate{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=1, gpu.power_smoothing.direction=down} 250
gpu.power_smoothing.ramp_rate{gpu.power_smoothing.setting=admin_override, gpu.power_smoothing.direction=up} 750
gpu.power_smoothing.ramp_down_hysteresis{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=2} 0.5
gpu.power_smoothing.secondary_floor{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=3} 900
gpu.power_smoothing.activation_offset{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=0} 100
gpu.power_smoothing.windows{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=0, gpu.power_smoothing.moving_average=activation} 4
gpu.power_smoothing.windows{gpu.power_smoothing.setting=profile, gpu.power_smoothing.profile=0, gpu.power_smoothing.moving_average=target} 8
gpu.feature.active{gpu.feature=power_smoothing} 1
gpu.feature.active{gpu.feature=power_smoothing_immediate_ramp_down} 0
gpu.feature.active{gpu.feature=power_smoothing_delayed} 1";

fn metric(name: &str) -> String {
    format!("gpu.power_smoothing.{name}")
}

#[test]
fn power_smoothing_values_are_in_base_units_for_a_privileged_reader() {
    let (_fake, watch) = Watch::scenario("gb200", "");
    watch.expect_all(PRIVILEGED);
    for (name, unit) in METRICS {
        let points = watch.points(&metric(name), &[FIRST]);
        assert_eq!(points[0].unit, unit, "{name}");
    }
    let beyond = [FIRST, ("gpu.power_smoothing.profile", "5")];
    assert!(watch.points(&metric("ramp_rate"), &beyond).is_empty());
}

#[test]
fn unset_power_smoothing_setting_and_floor_above_ceiling_have_no_value() {
    let readings = "gpus: {count: 1, all: {readings: {power_smoothing.lifetime_percent: 4096}}}";
    let (_fake, watch) = Watch::scenario("gb200", readings);
    let admin = ("gpu.power_smoothing.setting", "admin_override");
    watch.wait_any(&metric("ramp_rate"), &[admin]);
    watch.wait_passes(3);
    let sent = watch.end();
    let overridden: BTreeSet<_> = sent
        .iter()
        .filter(|point| !point.ends && point.is(&point.name, &[admin]))
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
        let (_fake, watch) = Watch::scenario(scenario, restricted);
        let is_refused = |notice: &GpuNotice| {
            let GpuNotice::Unavailable { reason, metrics, .. } = notice else {
                return false;
            };
            let all = METRICS.map(|(name, _)| metric(name));
            let has = |name: &String| metrics.iter().any(|metric| metric.name == *name);
            *reason == Reason::NoPermission && all.iter().all(has)
        };
        wait_until("the notice comes", || watch.count_notices(is_refused) > 0);
        watch.wait_passes(3);
        assert_eq!(watch.count_notices(is_refused), 1);
        let sent = watch.end();
        let of_smoothing = |point: &&Point| point.name.starts_with("gpu.power_smoothing.");
        let found = sent.iter().find(of_smoothing).map(|point| &point.name);
        assert_eq!(found, None, "{scenario}");
    }
}
