//! Drivers with wrong values: the experiment that can detect it fails, and the exit code is 1.

use super::check::run;

/// Panics unless the rows of an experiment whose text has these words failed, and no others did.
#[track_caller]
fn assert_failed(changes: &str, experiment: u64, words: &[&str]) {
    let check = run("gpu_check", changes, &experiment.to_string());
    assert_eq!(check.code, Some(1), "{}", check.output);
    let rows = check.rows(experiment);
    let failed: Vec<_> = rows
        .iter()
        .filter_map(|(what, verdict)| (*verdict == "FAILED").then_some(*what))
        .collect();
    for word in words {
        assert!(
            failed.iter().any(|what| what.contains(word)),
            "{word} in {rows:#?}"
        );
    }
    let explained = |what: &&str| words.iter().any(|word| what.contains(word));
    assert!(failed.iter().all(explained), "{failed:#?}");
    assert!(check.output.contains("FAILED"), "{}", check.output);
}

#[test]
fn check_fails_when_an_identity_differs_from_nvidia_smi() {
    // The second response of the driver differs from its scenario.
    let renamed = "faults: [{what: answers, error: NOT_SUPPORTED, calls: [nvmlDeviceGetSerial]}]";
    assert_failed(renamed, 1, &["serial"]);
}

#[test]
fn check_fails_when_only_pulsetrain_is_denied_a_value() {
    let refused = "faults: [{what: answers, error: UNKNOWN, calls: [nvmlDeviceGetPerformanceState]}]";
    assert_failed(
        refused,
        2,
        &[
            "gpu_performance_state",
            "fields that both have",
            "error of the driver",
        ],
    );
}

#[test]
fn check_fails_when_energy_is_not_the_integral_of_power() {
    let more = "gpus: {all: {readings: {energy_mj: {counter: {rate: 800000}}}}}";
    assert_failed(more, 4, &["idle", "load"]);
}

#[test]
fn check_fails_when_the_energy_counter_updates_only_every_second() {
    let slow = "gpus: {all: {readings: {energy_mj: {counter: {updates_every: 1}}}}}";
    let check = run("gpu_check", slow, "5");
    assert_eq!(check.code, Some(1), "{}", check.output);
}

#[test]
fn check_fails_when_performance_counters_have_the_wrong_unit() {
    let bytes = "gpus: {all: {readings: {gpm.pcie_rx_mib_per_second: {steps: [[0, 0], [2000, 3000000000], [4000, 0]]}}}}";
    assert_failed(bytes, 8, &["h2d: receive"]);
}

#[test]
fn check_fails_when_bytes_are_plausible_but_wrong() {
    let half =
        "gpus: {all: {readings: {gpm.pcie_rx_mib_per_second: {steps: [[0, 0], [2000, 1430], [4000, 0]]}}}}";
    assert_failed(
        half,
        7,
        &[
            "receive at 1 GB/s",
            "receive at 2 GB/s",
            "receive at 4 GB/s",
            "receive at 8 GB/s",
            "receive at 20 GB/s",
        ],
    );
}

#[test]
fn check_fails_when_the_driver_hides_processes() {
    let hidden = "faults: [{what: answers, error: NO_PERMISSION, calls: \
                  [nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v3]}]";
    let check = run("gpu_check", hidden, "13");
    assert_eq!(check.code, Some(1), "{}", check.output);
}
