//! Faults at the seconds of a scenario: before, during and after.

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    thread,
    time::Duration,
};

use nvml_wrapper::{error::NvmlError, structs::device::FieldId};
use pulsetrain_tests::FakeNvml;

use crate::fake_nvml::driver::{connect, error_of, start, try_connect};

#[test]
fn hung_fake_driver_responds_when_the_fault_ends() {
    let fake = FakeNvml::start("hang");
    fake.at(10.0);
    let (answered, answer) = sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(|| {
            let connected = try_connect(&fake).and_then(|nvml| nvml.device_count());
            answered.send(connected).expect("the test listens");
        });
        let in_time = answer.recv_timeout(Duration::from_millis(200));
        assert!(
            matches!(in_time, Err(RecvTimeoutError::Timeout)),
            "the driver answered while it hung"
        );
        fake.at(70.0);
        let answered = answer.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_eq!(answered.unwrap(), 8);
    });
}

#[test]
fn blocked_caller_is_released_when_the_fake_driver_is_dropped() {
    let (fake, nvml) = start(
        "h100x8",
        "faults: [{what: hangs, from: 10, calls: [nvmlDeviceGetCount_v2]}]",
    );
    fake.at(10.0);
    let waiting = thread::spawn(move || nvml.device_count().map(|_| ()));
    drop(fake);
    waiting.join().unwrap().unwrap();
}

#[test]
fn lost_gpu_fails_in_every_call_until_it_recovers() {
    let (fake, nvml) = start("gpu_lost", "");
    let lost = nvml.device_by_index(3).unwrap();
    let well = nvml.device_by_index(2).unwrap();
    lost.power_usage().unwrap();
    fake.at(10.0);
    assert_eq!(error_of(lost.power_usage()), "GpuLost");
    assert_eq!(error_of(lost.field_values_for(&[FieldId(83)])), "GpuLost");
    assert_eq!(error_of(nvml.device_by_index(3)), "GpuLost");
    assert_eq!(nvml.device_count().unwrap(), 8);
    well.power_usage().unwrap();
    fake.at(40.0);
    lost.power_usage().unwrap();
}

#[test]
fn reloaded_driver_rejects_clients_until_they_reinitialize() {
    let (fake, nvml) = start("driver_reload", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(5.0);
    let before = device.total_energy_consumption().unwrap();
    fake.at(10.0);
    assert_eq!(error_of(device.total_energy_consumption()), "DriverNotLoaded");
    assert_eq!(error_of(try_connect(&fake)), "DriverNotLoaded");
    fake.at(21.0);
    assert_eq!(error_of(device.total_energy_consumption()), "Uninitialized");
    // SAFETY: the handle is kept only to show that the new driver does not accept it.
    let old = unsafe { device.handle() };
    nvml.shutdown().unwrap();
    let again = connect(&fake);
    let device = again.device_by_index(0).unwrap();
    let after = device.total_energy_consumption().unwrap();
    assert!(after < before, "the counter restarts: {after} after {before}");
    // SAFETY: the fake never dereferences a handle.
    let unknown = unsafe { nvml_wrapper::Device::new(old, &again) };
    assert_eq!(error_of(unknown.total_energy_consumption()), "InvalidArg");
}

#[test]
fn added_and_removed_gpus_shift_the_indices() {
    let (fake, nvml) = start("hot_plug", "");
    let second = nvml.device_by_index(1).unwrap();
    let id_at = |index| {
        let device = nvml.device_by_index(index).expect("a device");
        device.uuid().expect("an id")
    };
    let ids: Vec<_> = (0..7).map(id_at).collect();
    assert_eq!(nvml.device_count().unwrap(), 7);
    fake.at(10.0);
    assert_eq!(nvml.device_count().unwrap(), 8);
    assert_eq!((0..7).map(id_at).collect::<Vec<_>>(), ids);
    fake.at(20.0);
    assert_eq!(nvml.device_count().unwrap(), 7);
    assert_eq!((id_at(0), id_at(1)), (ids[0].clone(), ids[2].clone()));
    assert_eq!(error_of(second.uuid()), "GpuLost");
    assert_eq!(error_of(nvml.device_by_uuid(ids[1].clone())), "NotFound");
}

#[test]
fn calls_and_fields_return_the_errors_of_the_scenario() {
    let (fake, nvml) = start("not_supported", "");
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(error_of(device.decoder_utilization()), "NotSupported");
    assert_eq!(error_of(device.process_utilization_stats(None)), "NoPermission");
    device.encoder_utilization().unwrap();
    let answers = |second| {
        fake.at(second);
        let values = device
            .field_values_for(&[82, 83, 230].map(FieldId))
            .expect("the call succeeds");
        values
            .into_iter()
            .map(|value| value.expect("a value").value.is_ok())
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(29.0), [false, true, false]);
    assert_eq!(answers(30.0), [false, true, true]);
    let unknown_at = |second, index| {
        fake.at(second);
        let device = nvml.device_by_index(index).expect("a device");
        matches!(device.utilization_rates(), Err(NvmlError::Unknown))
    };
    assert_eq!(
        [(9.0, 2), (10.0, 2), (10.0, 1), (20.0, 2)].map(|(second, gpu)| unknown_at(second, gpu)),
        [false, true, false, false]
    );
}

#[test]
fn missing_symbol_is_not_exported_and_the_others_are() {
    let (_fake, nvml) = start("missing_symbols", "");
    let device = nvml.device_by_index(0).unwrap();
    let missing = device.field_values_for(&[FieldId(83)]);
    assert!(error_of(missing).starts_with("FailedToLoadSymbol"));
    assert!(error_of(device.memory_info()).starts_with("FailedToLoadSymbol"));
    assert!(error_of(device.gpm_sample()).starts_with("FailedToLoadSymbol"));
    device.power_usage().unwrap();
    let (_complete, nvml) = start("h100x8", "");
    nvml.device_by_index(0).unwrap().memory_info().unwrap();
}

#[test]
fn calls_have_the_configured_latency_and_are_recorded() {
    let slow = "record_calls: true\nlatency: {calls_us: {nvmlDeviceGetName: 30000}}";
    let (fake, nvml) = start("h100x8", slow);
    let device = nvml.device_by_index(2).unwrap();
    fake.at(1.5);
    let (took, name) = timed(|| device.name());
    name.unwrap();
    assert!(took >= Duration::from_millis(30), "{took:?}");
    device.power_usage().unwrap();
    let calls = fake.calls();
    let last = calls[calls.len() - 2..].iter();
    let last: Vec<_> = last.map(|call| (call.second, &*call.name, call.gpu)).collect();
    let expected = ["nvmlDeviceGetName", "nvmlDeviceGetPowerUsage"].map(|name| (1.5, name, Some(2)));
    assert_eq!(last, expected);
    assert_eq!(calls[0].name, "nvmlInit_v2");
}

#[expect(clippy::disallowed_methods, reason = "how long a call takes is measured")]
fn timed<T>(act: impl FnOnce() -> T) -> (Duration, T) {
    let began = std::time::Instant::now();
    let done = act();
    (began.elapsed(), done)
}
