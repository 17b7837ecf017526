//! Eight H100 without faults: counted, named, and with the values that the scenario declares at a second.

use std::f64::consts::TAU;

use nvml_wrapper::{
    enum_wrappers::device::{Clock, TemperatureSensor},
    enums::device::UsedGpuMemory,
    struct_wrappers::device::ProcessInfo,
    structs::device::FieldId,
};

use crate::fake_nvml::driver::{error_of, scoped, start};

#[test]
fn fake_gpus_are_found_by_index_uuid_and_pci_bus_id() {
    let (_fake, nvml) = start("h100x8", "");
    assert_eq!(nvml.device_count().unwrap(), 8);
    assert_eq!(nvml.sys_driver_version().unwrap(), "570.86.15");
    for index in 0..8 {
        let device = nvml.device_by_index(index).unwrap();
        assert_eq!(device.name().unwrap(), "NVIDIA H100 80GB HBM3");
        let uuid = device.uuid().unwrap();
        assert_eq!(uuid, format!("GPU-5fae0c00-1f2e-4d3c-8b4a-0000000000{index:02x}"));
        assert_eq!(nvml.device_by_uuid(uuid).unwrap().index().unwrap(), index);
        let pci = device.pci_info().unwrap();
        assert_eq!((pci.bus, pci.pci_device_id), (index * 16 + 11, 0x2330_10de));
        assert_eq!(
            nvml.device_by_pci_bus_id(pci.bus_id).unwrap().index().unwrap(),
            index
        );
    }
    assert_eq!(error_of(nvml.device_by_index(8)), "InvalidArg");
    assert_eq!(error_of(nvml.device_by_uuid("GPU-nobody")), "NotFound");
}

#[test]
fn readings_follow_the_declared_functions_of_time() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(3).unwrap();
    // Multiples of a tenth of a second, at which the energy counter is updated.
    for second in [0.0, 2.5, 15.0, 31.2] {
        fake.at(second);
        let sine = (TAU * second / 20.0).sin();
        let (busy, milliwatts) = (60.0 + 40.0 * sine, 500_000.0 + 180_000.0 * sine);
        assert_eq!(device.utilization_rates().unwrap().gpu, busy as u32);
        assert_eq!(device.power_usage().unwrap(), milliwatts as u32);
        let joules = 500.0 * second + 200.0 * 20.0 / TAU * (1.0 - (TAU * second / 20.0).cos());
        let energy = device.total_energy_consumption().unwrap();
        assert!(
            (energy as f64 - 123_456_000.0 - joules * 1e3).abs() <= 1.0,
            "{energy} at {second}"
        );
        let risen = (second / 30.0).min(1.0);
        let memory = device.memory_info().unwrap();
        assert_eq!(memory.used, (1_073_741_824.0 + 63_350_767_616.0 * risen) as u64);
        assert_eq!(memory.total, memory.used + memory.free + memory.reserved);
        let temperature = device.temperature(TemperatureSensor::Gpu).unwrap();
        assert_eq!(temperature, (35.0 + second / 2.0) as u32);
        assert_eq!(device.clock_info(Clock::SM).unwrap(), 1755);
    }
}

#[test]
fn field_values_carry_their_type_and_time() {
    let (fake, nvml) = start("h100x8", "");
    fake.at(10.0);
    let device = nvml.device_by_index(0).unwrap();
    let fields = [186, 82, 198, 999].map(FieldId);
    let values = device.field_values_for(&fields).unwrap();
    let read: Vec<_> = values.into_iter().map(|value| value.unwrap()).collect();
    let numbers: Vec<_> = read.iter().map(|sample| &sample.value).collect();
    // The third is 30,002,000,000 modulo 2^32.
    let expected = "[Ok(U32(500000)), Ok(U32(50)), Ok(U32(4232196224)), Err(InvalidArg)]";
    assert_eq!(format!("{numbers:?}"), expected);
    for sample in &read[..3] {
        assert_eq!(sample.timestamp as u64 * 1_000, fake.unix_nanos(10.0));
    }
}

#[test]
fn negative_field_value_has_the_signed_type_that_nvml_wrapper_rejects() {
    let (_fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let wrapped = device.field_values_for(&[FieldId(194)]).unwrap().remove(0);
    assert_eq!(error_of(wrapped), "UnexpectedVariant(5)");
    let raw = scoped(&device, &[(194, 0)])[0];
    assert_eq!(raw.valueType, 5);
    // SAFETY: the type of the value is that of a signed number.
    assert_eq!(unsafe { raw.value.siVal }, -2);
}

#[test]
fn field_scope_selects_the_link_and_the_power_sensor() {
    let (fake, nvml) = start(
        "h100x8",
        "gpus: {all: {readings: {power.module.average_mw: 620000}}}",
    );
    let device = nvml.device_by_index(0).unwrap();
    fake.at(2.0);
    let asked = [
        (138, 0),
        (138, 7),
        (138, u32::MAX),
        (138, 18),
        (185, 1),
        (185, 2),
        (37, 0),
    ];
    let read = scoped(&device, &asked);
    // SAFETY: every value was initialized with zeros of the widest member, so that any member can be read.
    let numbers: Vec<_> = read
        .iter()
        .map(|value| (value.nvmlReturn, unsafe { value.value.ullVal }))
        .collect();
    let all_links = 17 * 2_000_100 + 4_000_700;
    let module_and_memory = [(0, 620_000), (0, 70_000), (0, 0)];
    assert_eq!(
        numbers[..4],
        [(0, 2_000_100), (0, 4_000_700), (0, all_links), (2, 0)]
    );
    assert_eq!(numbers[4..], module_and_memory);
}

#[test]
fn process_list_contains_the_processes_of_that_gpu() {
    let (_fake, nvml) = start("h100x8", "");
    let processes_of = |index| {
        let device = nvml.device_by_index(index).expect("a device");
        let processes = device.running_compute_processes().expect("processes");
        let of_each = |process: ProcessInfo| (process.pid, process.used_gpu_memory);
        processes.into_iter().map(of_each).collect::<Vec<_>>()
    };
    let expected = [
        (4101, UsedGpuMemory::Used(42_949_672_960)),
        (4102, UsedGpuMemory::Used(1_073_741_824)),
    ];
    assert_eq!(processes_of(0), expected);
    assert!(processes_of(1).is_empty());
}

#[test]
fn two_fake_drivers_have_independent_clocks() {
    let (one, nvml_one) = start("h100x8", "");
    let (_other, nvml_other) = start("h100x8", "");
    one.at(60.0);
    let temperature = |nvml: &nvml_wrapper::Nvml| {
        let device = nvml.device_by_index(0).expect("a device");
        device.temperature(TemperatureSensor::Gpu).expect("a temperature")
    };
    assert_eq!((temperature(&nvml_one), temperature(&nvml_other)), (65, 35));
}
