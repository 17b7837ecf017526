//! Memory errors, remapped rows and retired pages, throttle time, fans and limits: the health of a GPU.

use nvml_wrapper::{
    enum_wrappers::device::{
        EccCounter, MemoryError, MemoryLocation, PerformancePolicy, RetirementCause, TemperatureThreshold,
    },
    structs::device::FieldId,
};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn memory_errors_are_reported_by_type_period_and_location() {
    let changes = "gpus: {all: {readings: {ecc.corrected.volatile: {counter: {rate: 2}}}}}";
    let (fake, nvml) = start("h100x8", changes);
    let device = nvml.device_by_index(0).unwrap();
    fake.at(21.0);
    let total = |kind, since| device.total_ecc_errors(kind, since).expect("a count");
    assert_eq!(total(MemoryError::Corrected, EccCounter::Volatile), 42);
    assert_eq!(total(MemoryError::Corrected, EccCounter::Aggregate), 3);
    assert_eq!(total(MemoryError::Uncorrected, EccCounter::Aggregate), 0);
    let at = |place| device.memory_error_counter(MemoryError::Corrected, EccCounter::Aggregate, place);
    assert_eq!(at(MemoryLocation::Device).unwrap(), 2);
    assert_eq!(error_of(at(MemoryLocation::L1Cache)), "NotSupported");
}

#[test]
fn pages_are_retired_on_gpus_without_row_remapping() {
    let pages = "retired_pages: [{cause: 1, address: 4096}, {cause: 1, address: 8192, at: 10}]";
    let older = format!("gpus: {{all: {{{pages}, readings: {{retired_pages.pending: 1}}}}}}");
    let (fake, nvml) = start("h100x8", &older);
    let device = nvml.device_by_index(0).unwrap();
    let addresses_at = |second| {
        fake.at(second);
        let pages = device.retired_pages(RetirementCause::DoubleBitEccError);
        let pages = pages.expect("pages");
        pages.iter().map(|page| page.address).collect::<Vec<_>>()
    };
    assert_eq!(addresses_at(9.0), [4096]);
    assert_eq!(addresses_at(10.0), [4096, 8192]);
    assert!(device.are_pages_pending_retired().unwrap());
    let (_newer, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let refused = device.retired_pages(RetirementCause::DoubleBitEccError);
    assert_eq!(error_of(refused), "NotSupported");
}

#[test]
fn throttle_time_grows_while_the_reason_is_active() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    for (second, nanos, reasons) in [(5.0, 1_000_000_000, 0), (14.0, 2_000_000_000, 4)] {
        fake.at(second);
        let violation = device.violation_status(PerformancePolicy::Power).unwrap();
        assert_eq!(violation.violation_time, nanos);
        assert_eq!(violation.reference_time * 1_000, fake.unix_nanos(second));
        assert_eq!(device.current_throttle_reasons().unwrap().bits(), reasons);
    }
}

#[test]
fn fields_from_251_use_the_numbering_of_the_driver() {
    for scenario in ["h100x8", "later_field_ids"] {
        let (fake, nvml) = start(scenario, "");
        fake.at(7.0);
        // The wrapper maps field ids, so both drivers get the same query.
        let device = nvml.device_by_index(0).unwrap();
        let values = device.field_values_for(&[251, 252, 253].map(FieldId)).unwrap();
        let values: Vec<_> = values.into_iter().map(|value| value.unwrap().value).collect();
        let expected = "[Ok(U64(7000000)), Ok(U64(14000000)), Ok(U64(21000000))]";
        assert_eq!(format!("{values:?}"), expected, "{scenario}");
    }
}

#[test]
fn limits_and_thresholds_are_reported() {
    let (_fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let limits = device.power_management_limit_constraints().unwrap();
    assert_eq!((limits.min_limit, limits.max_limit), (200_000, 700_000));
    assert_eq!(device.enforced_power_limit().unwrap(), 700_000);
    let slowdown = device.temperature_threshold(TemperatureThreshold::Slowdown);
    assert_eq!(slowdown.unwrap(), 89);
    assert!(device.num_fans().is_err());
    assert_eq!(device.cuda_compute_capability().unwrap().major, 9);
    assert!(device.is_ecc_enabled().unwrap().currently_enabled);
    assert!(!device.is_cc_enabled().unwrap());
}
