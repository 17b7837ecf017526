//! The library can load every scenario in the folder and return values from it.

use std::{fs, path::Path};

use pulsetrain_tests::FakeNvml;

use crate::fake_nvml::driver::{error_of, start, try_connect};

#[test]
fn every_scenario_has_gpus_with_names_and_unique_ids() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-nvml/scenarios");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (_fake, nvml) = start(&name, "");
        let count = nvml.device_count().unwrap();
        assert!(count > 0, "{name} has no GPU");
        let mut ids: Vec<_> = (0..count)
            .map(|index| nvml.device_by_index(index).unwrap().uuid().unwrap())
            .collect();
        ids.dedup();
        assert_eq!(ids.len(), count as usize, "{name}: two GPUs have one id");
        seen += 1;
    }
    assert!(seen >= 15, "only {seen} scenarios were found");
}

#[test]
fn invalid_scenario_fails_to_initialize_the_driver() {
    for nonsense in [
        "gpus: {count: many}",
        "faults: [{what: explodes}]",
        "faults: [{what: answers}]",
        "faults: [{what: answers, error: TOO_HOT}]",
        "gpus: {all: {readings: {energy_mj: no.such.reading}}}",
        "gpus: {all: {colour: green}}",
    ] {
        let fake = FakeNvml::with("h100x8", nonsense);
        assert_eq!(error_of(try_connect(&fake)), "Unknown", "{nonsense} was taken");
    }
}
