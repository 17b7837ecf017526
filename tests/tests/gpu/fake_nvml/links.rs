//! Link counters: bytes that wrap at 32 bits, resets, and counters per link.

use nvml_wrapper::{
    enum_wrappers::{device::PcieUtilCounter, nv_link::ErrorCounter},
    enums::device::SampleValue,
    structs::device::FieldId,
};

use crate::fake_nvml::driver::{error_of, scoped, start};

#[test]
fn fake_32_bit_counter_wraps_at_the_expected_time() {
    let (fake, nvml) = start("counter_wrap", "");
    let device = nvml.device_by_index(0).unwrap();
    let bytes_at = |second| {
        fake.at(second);
        let values = device.field_values_for(&[197, 198].map(FieldId)).expect("values");
        let numbers = values
            .into_iter()
            .map(|value| value.expect("a value").value.expect("a number"));
        numbers.map(number).collect::<Vec<_>>()
    };
    assert_eq!(bytes_at(9.0), [4_194_967_296, 4_094_967_296]);
    assert_eq!(bytes_at(10.0), [0, 0]);
    assert_eq!(bytes_at(11.0), [100_000_000, 200_000_000]);
}

#[test]
fn a_pcie_byte_counter_wraps_many_times_a_second_on_a_busy_link() {
    let changes =
        "gpus: {count: 1, all: {readings: {pcie.tx_bytes: {counter: {start: 0, rate: 20000000000}}}}}";
    let (fake, nvml) = start("h100x8", changes);
    let device = nvml.device_by_index(0).unwrap();
    fake.at(1.0);
    let mut values = device.field_values_for(&[FieldId(197)]).expect("values");
    let value = values.remove(0).expect("a value").value.expect("a number");
    assert_eq!(number(value), 20_000_000_000 % (1 << 32));
}

#[test]
fn energy_counter_updates_ten_times_per_second() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let at = |second| {
        fake.at(second);
        device.total_energy_consumption().expect("a counter")
    };
    let first = at(1.0);
    assert_eq!([at(1.03), at(1.09)], [first; 2]);
    assert!(at(1.1) > first);
}

#[test]
fn reset_counter_restarts_from_zero() {
    let (fake, nvml) = start("counter_reset", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(19.0);
    assert!(device.total_energy_consumption().unwrap() > 123_456_000);
    fake.at(20.0);
    assert_eq!(device.total_energy_consumption().unwrap(), 0);
    fake.at(40.0);
    // A full period of the sine, whose mean is 500 W.
    assert_eq!(device.total_energy_consumption().unwrap(), 10_000_000);
}

#[test]
fn each_nvlink_has_a_separate_state_and_error_count() {
    let changes =
        "gpus: {all: {readings: {nvlink.5.state: 0, nvlink.5.replays: 17, nvlink.5.crc_flit_errors: 9}}}";
    let (_fake, nvml) = start("h100x8", changes);
    let device = nvml.device_by_index(0).unwrap();
    let active = |link| device.link_wrapper_for(link).is_active().expect("a state");
    assert_eq!((0..18).filter(|link| !active(*link)).collect::<Vec<_>>(), [5]);
    assert_eq!(error_of(device.link_wrapper_for(18).is_active()), "InvalidArg");
    let fifth = device.link_wrapper_for(5);
    assert_eq!(fifth.error_counter(ErrorCounter::DlReplay).unwrap(), 17);
    let asked = [(161, 5), (37, 0), (38, 0), (52, 0), (165, 4), (165, 5)];
    // SAFETY: every value was initialized with zeros of the widest member.
    let numbers: Vec<_> = scoped(&device, &asked)
        .iter()
        .map(|value| unsafe { value.value.ullVal })
        .collect();
    assert_eq!(numbers, [17, 9, 9, 17, 1, 0]);
}

#[test]
fn pcie_throughput_call_returns_the_measured_rate() {
    let (_fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let received = device.pcie_throughput(PcieUtilCounter::Receive).unwrap();
    assert_eq!(received, 2_929_687);
}

fn number(value: SampleValue) -> u64 {
    match value {
        SampleValue::U32(number) => number.into(),
        other => panic!("a byte counter of PCI Express has 32 bits, not {other:?}"),
    }
}
