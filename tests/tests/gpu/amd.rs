//! AMD GPUs, read from the files in `/sys`.

use std::{collections::BTreeSet, fs};

use pulsetrain_gpu::{GpuConfig, GpuNotice, GpuSemconv, GpuTrouble, Reason};
use pulsetrain_pipeline::clock;
use pulsetrain_tests::{AmdModel, FakeNvml, FakeSysfs, GpuMetrics, wait_until};

use crate::watch::{INTERVAL, Watch, parse_series};

/// Series of an MI300X and their values.
const MI300X: &str = "\
gpu.utilization{gpu.task=general} 0.37
gpu.memory.activity 0.12
gpu.memory.used 297512960
gpu.memory.free 205844140032
gpu.memory.limit 206141652992
gpu.power{gpu.power.reading=instant} 143
gpu.power_limit{gpu.power.limit_kind=enforced} 750
gpu.power_limit{gpu.power.limit_kind=default} 750
gpu.temperature{gpu.temperature.sensor=gpu} 62
gpu.temperature{gpu.temperature.sensor=memory} 51
gpu.temperature_limit{gpu.temperature.limit_kind=shutdown} 110
gpu.clock.frequency{gpu.clock.domain=graphics} 132e6
gpu.clock.frequency{gpu.clock.domain=memory} 900e6
gpu.clock.limit{gpu.clock.domain=graphics} 2100e6
gpu.clock.limit{gpu.clock.domain=memory} 1300e6
gpu.pcie.speed{gpu.link.reading=current} 4e9
gpu.pcie.generation{gpu.link.reading=max} 5
gpu.pcie.width{gpu.link.reading=current} 16
gpu.pcie.replays 2
gpu.pcie.recoveries 4
gpu.xgmi.speed 64e9
gpu.ecc.errors{gpu.ecc.severity=corrected} 7
gpu.ecc.errors{gpu.ecc.severity=uncorrected} 1
gpu.ecc.location_errors{gpu.ecc.severity=corrected, gpu.ecc.location=dram} 3
gpu.process.memory{process.pid=4711} 1073741824
gpu.info{gpu.name=AMD Instinct MI300X OAM, gpu.architecture=gfx942} 1
gpu.info{gpu.pci.address=0000:1c:00.0, gpu.driver.version=6.10.5} 1
gpu.info{gpu.compute_partition=SPX, gpu.memory_partition=NPS1} 1";

/// Returns the configuration for a machine without NVML.
fn config(machine: &FakeSysfs) -> GpuConfig {
    GpuConfig {
        library: Some(machine.root().join("libnvidia-ml.so.1")),
        sysfs: machine.root().to_owned(),
        interval: INTERVAL,
        ..GpuConfig::default()
    }
}

#[test]
fn mi300x_values_match_sysfs_in_base_units() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 8);
    machine.set_process(1, 4711, 1 << 30);
    let watch = Watch::start(config(&machine));
    let second = [("gpu.index", "1"), ("gpu.id", "GPU-21b6d61638a86f8d")];
    for (name, mut attributes, value) in parse_series(MI300X) {
        attributes.extend(second);
        watch.wait_value(name, &attributes, value);
    }
    assert_eq!(watch.inventory().gpus.len(), 8);
    let observed = "observing 8 GPUs (AMD Instinct MI300X OAM, driver 6.10.5)";
    assert_eq!(
        watch.notices().first().map(ToString::to_string).as_deref(),
        Some(observed)
    );
    // Unsupported metrics are reported once for all GPUs, without XID errors, which exist only on NVIDIA GPUs.
    let lacked_by_all = || {
        watch.notices().into_iter().find_map(|notice| match notice {
            GpuNotice::Unavailable {
                gpus,
                reason: Reason::NotSupported,
                metrics,
            } if gpus.len() == 8 => Some(metrics),
            _ => None,
        })
    };
    wait_until("there is a notice", || lacked_by_all().is_some());
    let lacks: BTreeSet<_> = lacked_by_all()
        .expect("it was waited for")
        .iter()
        .map(|metric| metric.name)
        .collect();
    assert_eq!(
        lacks,
        BTreeSet::from([
            "gpu.average_power",
            "gpu.fan.speed",
            "gpu.throttle.active",
            "gpu.throttle.time",
            "gpu.xgmi.up"
        ])
    );
    let names: BTreeSet<_> = watch.end().into_iter().map(|point| point.name).collect();
    assert!(
        !names.contains("gpu.xid_errors") && !names.contains("gpu.average_power"),
        "{names:?}"
    );
}

#[test]
fn gpus_of_both_vendors_are_observed() {
    let fake = FakeNvml::with("h100x8", "gpus: {count: 2}");
    let machine = FakeSysfs::with(AmdModel::Mi300x, 2);
    let watch = Watch::start(GpuConfig {
        sysfs: machine.root().to_owned(),
        ..crate::watch::config(&fake)
    });
    let info = |index, version| [("gpu.index", index), ("gpu.driver.version", version)];
    for (index, version, name) in [
        ("1", "570.86.15", "NVIDIA H100 80GB HBM3"),
        ("2", "6.10.5", "AMD Instinct MI300X OAM"),
        ("3", "6.10.5", "AMD Instinct MI300X OAM"),
    ] {
        let point = watch.wait_any("gpu.info", &info(index, version));
        assert_eq!(point.attributes["gpu.name"], name);
    }
    watch.wait_value("gpu.power", &[("gpu.index", "0")], 500.0);
    watch.wait_value("gpu.power", &[("gpu.index", "3")], 143.0);
    assert_eq!(watch.inventory().gpus.len(), 4);
    let observed = watch
        .notices()
        .iter()
        .map(ToString::to_string)
        .find(|line| line.starts_with("observing"));
    assert!(
        observed.is_some_and(|line| line.starts_with("observing 4 GPUs")),
        "{:?}",
        watch.notices()
    );
    // A removed AMD GPU is dropped, and reading of the others continues.
    machine.remove(1);
    watch.wait_end("gpu.power", &[("gpu.index", "3")]);
    wait_until("it is gone", || watch.inventory().gpus.len() == 3);
    let last = watch.points("gpu.memory.used", &[("gpu.index", "0")]).len();
    wait_until("NVIDIA's are read on", || {
        watch.points("gpu.memory.used", &[("gpu.index", "0")]).len() > last
    });
}

#[test]
fn amd_gpus_keep_reporting_while_the_nvidia_driver_hangs() {
    let fake = FakeNvml::with(
        "h100x8",
        "gpus: {count: 2}\nfaults: [{what: hangs, from: 10, until: 20}]",
    );
    let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
    let watch = Watch::start(GpuConfig {
        sysfs: machine.root().to_owned(),
        ..crate::watch::config(&fake)
    });
    let (nvidia, amd) = ([("gpu.index", "1")], [("gpu.index", "2")]);
    watch.wait_any("gpu.memory.used", &nvidia);
    watch.wait_any("gpu.memory.used", &amd);
    fake.at(10.0);
    let ended = watch.wait_end("gpu.memory.used", &nvidia);
    watch.wait_back("gpu.memory.used", &amd, &ended);
    let of_amd = watch.points("gpu.memory.used", &amd);
    assert!(!of_amd.iter().any(|point| point.ends), "{of_amd:?}");
    let troubles = [0, 1].map(|gpu| watch.troubles(gpu)).concat();
    let hangs = troubles.iter().filter(|trouble| **trouble == GpuTrouble::Hangs);
    assert_eq!(hangs.count(), 2);
    fake.at(20.0);
    watch.wait_back("gpu.memory.used", &nvidia, &ended);
}

#[test]
fn mi250x_reports_average_power_edge_temperature_and_pcie_replays() {
    let machine = FakeSysfs::with(AmdModel::Mi250x, 1);
    let watch = Watch::start(config(&machine));
    watch.wait_value("gpu.power", &[("gpu.power.reading", "average")], 143.0);
    watch.wait_value("gpu.average_power", &[], 143.0);
    watch.wait_value("gpu.temperature", &[("gpu.temperature.sensor", "gpu")], 47.0);
    watch.wait_value("gpu.pcie.replays", &[], 0.0);
    let info = [("gpu.name", "AMD GPU 0x7408"), ("gpu.architecture", "gfx90a")];
    watch.wait_any("gpu.info", &info);
}

#[test]
fn mi250x_reports_throttle_reasons_and_mi300x_reports_why_it_cannot() {
    let machine = FakeSysfs::with(AmdModel::Mi250x, 1);
    let watch = Watch::start(config(&machine));
    let mut since = 0;
    for (bit, held) in [
        (0, "power_cap"),
        (17, "other_cap"),
        (34, "thermal_cap"),
        (57, "other_cap"),
    ] {
        machine.set_throttle_status(0, 1 << bit);
        let is_held = [("gpu.throttle.reason", held)];
        let first = watch.wait_for("gpu.throttle.active", &is_held, |point| {
            point.time > since && point.value == 1.0
        });
        watch.wait_passes(1);
        for other in ["power_cap", "other_cap", "thermal_cap"] {
            let points = watch.points("gpu.throttle.active", &[("gpu.throttle.reason", other)]);
            let last = points.last().expect("each reason has a series").value;
            assert_eq!(last, f64::from(u8::from(other == held)), "{other} at bit {bit}");
        }
        machine.set_throttle_status(0, 0);
        let last = watch.wait_for("gpu.throttle.active", &is_held, |point| {
            point.time > first.time && point.value == 0.0
        });
        since = last.time;
    }
    let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
    let watch = Watch::start(config(&machine));
    watch.wait_unavailable("gpu.throttle.active", "not_supported");
}

#[test]
fn every_mi300x_table_format_gives_the_same_links_and_errors() {
    for revision in 4..=9 {
        let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
        machine.set_metrics(0, &GpuMetrics::of_mi300x(revision));
        let watch = Watch::start(config(&machine));
        watch.wait_value("gpu.xgmi.speed", &[], 64e9);
        watch.wait_value("gpu.pcie.replays", &[], 2.0);
        watch.wait_value("gpu.pcie.recoveries", &[], 4.0);
        for link in 0..7 {
            let number = link.to_string();
            for (direction, first) in [("receive", 1000), ("transmit", 2000)] {
                let labels = [("gpu.link.index", &*number), ("gpu.io.direction", direction)];
                let bytes = f64::from((first + link) * 1024);
                watch.wait_value("gpu.xgmi.io", &labels, bytes);
            }
        }
        let of_last = [("gpu.link.index", "7")];
        assert!(
            watch.points("gpu.xgmi.io", &of_last).is_empty(),
            "format 1.{revision}"
        );
        if revision < 7 {
            assert!(watch.points("gpu.xgmi.up", &[]).is_empty(), "format 1.{revision}");
            continue;
        }
        for (link, state) in [("0", 1.0), ("3", 0.0), ("6", 1.0)] {
            watch.wait_value("gpu.xgmi.up", &[("gpu.link.index", link)], state);
        }
        assert!(
            watch.points("gpu.xgmi.up", &of_last).is_empty(),
            "format 1.{revision}"
        );
    }
}

#[test]
fn mi300x_reports_throttle_reasons_and_durations() {
    let reasons = ["power_cap", "thermal_cap", "hw_thermal_slowdown"];
    for revision in 6..=9 {
        let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
        let mut table = GpuMetrics::of_mi300x(revision);
        let mut set = |seconds, cycles, residencies| {
            table.set_cycles(seconds, cycles, residencies);
            machine.set_metrics(0, &table);
        };
        set(100, 1_000_000, [5, 5, 5, 5, 5]);
        let watch = Watch::start(config(&machine));
        // An unchanged value is sent only occasionally, so the last one counts.
        let last = |name, reason| {
            let points = watch.points(name, &[("gpu.throttle.reason", reason)]);
            points.last().map(|point| point.value)
        };
        let wait_for = |times: [f64; 3], active: [f64; 3]| {
            for (reason, (time, active)) in reasons.iter().zip(times.iter().zip(active)) {
                wait_until(
                    &format!("{reason}: {time} s, {active} in format 1.{revision}"),
                    || {
                        last("gpu.throttle.time", reason).is_some_and(|found| (found - time).abs() < 1e-6)
                            && last("gpu.throttle.active", reason) == Some(active)
                    },
                );
            }
        };
        wait_for([0.0; 3], [0.0; 3]);
        // In 10,000 cycles of 10 s: 2,500 at the power limit; the memory was hot in 5,000, the socket in some of these.
        set(110, 1_010_000, [5, 2505, 1005, 5, 5005]);
        wait_for([2.5, 5.0, 0.0], [1.0, 1.0, 0.0]);
        set(112, 1_012_000, [505, 2505, 1005, 5, 5005]);
        wait_for([2.5, 5.0, 0.5], [0.0, 0.0, 1.0]);
        // A reset of the GPU restarts the counters.
        set(120, 100, [0; 5]);
        watch.wait_passes(2);
        set(121, 1100, [0, 0, 0, 250, 0]);
        wait_for([2.5, 5.25, 0.5], [0.0, 1.0, 0.0]);
    }
}

#[test]
fn changed_gpu_partitions_are_detected() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
    let watch = Watch::start(config(&machine));
    watch.wait_any("gpu.info", &[("gpu.compute_partition", "SPX")]);
    machine.set(0, "current_compute_partition", "CPX\n");
    machine.set(0, "current_memory_partition", "NPS4\n");
    let split = [("gpu.compute_partition", "CPX"), ("gpu.memory_partition", "NPS4")];
    watch.wait_any("gpu.info", &split);
}

/// Advances the energy counter of GPU 0 at 300 W in a format of the table, with a factor on its unit, until `done`; returns all
/// of its values in joules.
fn burn(machine: &FakeSysfs, revision: u8, scale: f64, mut done: impl FnMut() -> bool) -> Vec<f64> {
    let (begin, mut values) = (clock::now(), vec![0.0]);
    wait_until("the energy is judged", || {
        let joules = 300.0 * begin.elapsed().as_secs_f64();
        let table = GpuMetrics::of_mi300x(revision);
        machine.set_counted(AmdModel::Mi300x, 0, table, 300.0, joules * scale);
        values.push(joules * scale);
        done()
    });
    values
}

#[test]
fn amd_energy_is_recorded_once_it_agrees_with_the_power() {
    // The first and the latest format of an MI300X.
    for revision in [4, 9] {
        let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
        let watch = Watch::start(config(&machine));
        watch.wait_any("gpu.power", &[]);
        let mut points = Vec::new();
        let values = burn(&machine, revision, 1.0, || {
            points = watch.points("gpu.energy", &[]);
            points.len() >= 5
                && points.last().map(|last| last.value) > points.first().map(|first| first.value)
        });
        // One unit of the counter is 2^-16 J.
        let is_one = |value: f64| values.iter().any(|written| (written - value).abs() < 1e-4);
        for point in &points {
            assert!(
                is_one(point.value),
                "{} J is not a value of the counter",
                point.value
            );
        }
    }
}

#[test]
fn amd_energy_in_an_unexpected_unit_is_rejected_with_a_reason() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
    let watch = Watch::start(config(&machine));
    let is_refused = |notice: &GpuNotice| {
        matches!(notice, GpuNotice::Unavailable { reason: Reason::DriverError, metrics, .. }
            if metrics.iter().any(|metric| metric.name == "gpu.energy"))
    };
    burn(&machine, 5, 8.0, || watch.notices().iter().any(is_refused));
    assert!(watch.points("gpu.energy", &[]).is_empty());
}

#[test]
fn invalid_sysfs_file_disables_only_its_metric_and_is_reported() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 2);
    machine.set(1, "gpu_busy_percent", "busy\n");
    fs::remove_file(machine.file(1, "gpu_metrics")).unwrap();
    let watch = Watch::start(config(&machine));
    let second = [("gpu.index", "1")];
    watch.wait_any("gpu.memory.used", &second);
    let is_named = |notice: &GpuNotice| {
        matches!(notice, GpuNotice::Unavailable { gpus, reason: Reason::DriverError, metrics }
            if *gpus == [1] && metrics.iter().any(|metric| metric.name == "gpu.utilization"))
    };
    wait_until("it is named", || watch.notices().iter().any(is_named));
    assert!(watch.points("gpu.utilization", &second).is_empty());
    machine.set(1, "gpu_busy_percent", "50\n");
    watch.wait_value("gpu.utilization", &second, 0.5);
}

#[test]
fn added_and_removed_amd_gpus_are_detected() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 2);
    let watch = Watch::start(config(&machine));
    let third = [("gpu.index", "2")];
    watch.wait_any("gpu.memory.used", &[("gpu.index", "1")]);
    machine.add(AmdModel::Mi300x, 2);
    watch.wait_any("gpu.memory.used", &third);
    machine.remove(2);
    watch.wait_end("gpu.memory.used", &third);
    wait_until("it is gone", || watch.inventory().gpus.len() == 2);
}

#[test]
fn machine_without_any_gpu_driver_reports_one_notice() {
    let machine = FakeSysfs::default();
    let watch = Watch::start(GpuConfig {
        library: None,
        ..config(&machine)
    });
    wait_until("there is a notice", || !watch.notices().is_empty());
    let notices = watch.notices();
    let [GpuNotice::NoDriver(problem)] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    let why = &problem.what;
    assert!(why.contains("no NVIDIA driver and no AMD GPU"), "{why}");
}

#[test]
fn hw_semconv_series_of_amd_gpus_have_the_vendor() {
    let machine = FakeSysfs::with(AmdModel::Mi300x, 1);
    let watch = Watch::start(GpuConfig {
        semconv: GpuSemconv::Hw,
        ..config(&machine)
    });
    let amd = [("hw.vendor", "AMD"), ("hw.model", "AMD Instinct MI300X OAM")];
    watch.wait_value("hw.gpu.memory.limit", &amd, 206_141_652_992.0);
    let port = [("hw.name", "GPU 0 xgmi 3"), ("network.io.direction", "receive")];
    watch.wait_value("hw.network.io", &port, 1_027_072.0);
    watch.wait_value("hw.status", &[("hw.state", "ok")], 1.0);
}
