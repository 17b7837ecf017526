//! Faults of one GPU: they affect every access to it, also through an existing handle, and no other GPU. Also the clients of
//! the driver.

use std::{sync::mpsc::sync_channel, thread, time::Duration};

use pulsetrain_tests::FakeNvml;

use crate::fake_nvml::driver::{connect, error_of, scoped, start, try_connect};

#[test]
fn unopenable_gpu_is_counted_but_has_no_handle() {
    for (error, expected) in [
        ("UNKNOWN", "Unknown"),
        ("NO_PERMISSION", "NoPermission"),
        ("IRQ_ISSUE", "IrqIssue"),
        ("INSUFFICIENT_POWER", "InsufficientPower"),
        ("OPERATING_SYSTEM", "OperatingSystem"),
    ] {
        let fault = format!("faults: [{{what: answers, error: {error}, gpus: [2]}}]\ngpus: {{count: 4}}");
        let (_fake, nvml) = start("h100x8", &fault);
        assert_eq!(nvml.device_count().unwrap(), 4);
        let handles: Vec<_> = (0..4)
            .map(|index| nvml.device_by_index(index).map(|_| ()))
            .collect();
        assert_eq!(format!("{:?}", handles[2]), format!("Err({expected})"));
        assert!(handles[3].is_ok());
        let by_uuid = nvml.device_by_uuid("GPU-5fae0c00-1f2e-4d3c-8b4a-000000000002");
        assert_eq!(format!("{:?}", by_uuid.map(|_| ())), format!("Err({expected})"));
    }
}

#[test]
fn hung_gpu_blocks_opening_its_handle_but_not_other_gpus() {
    let (fake, nvml) = start(
        "h100x8",
        "faults: [{what: hangs, from: 10, until: 70, gpus: [1]}]",
    );
    fake.at(10.0);
    thread::scope(|scope| {
        let (answered, answer) = sync_channel(1);
        let nvml = &nvml;
        scope.spawn(move || answered.send(nvml.device_by_index(1).map(|_| ())));
        nvml.device_by_index(0).unwrap().power_usage().unwrap();
        assert!(answer.recv_timeout(Duration::from_millis(100)).is_err());
        fake.at(70.0);
        answer.recv_timeout(Duration::from_secs(60)).unwrap().unwrap();
    });
}

#[test]
fn driver_with_an_open_client_is_not_unloaded() {
    let reload = "faults: [{what: driver_reload, from: 10, until: 20}]";
    let (held, free) = (FakeNvml::with("h100x8", reload), FakeNvml::with("h100x8", reload));
    let nvml = connect(&held);
    let device = nvml.device_by_index(0).unwrap();
    for fake in [&held, &free] {
        fake.at(15.0);
    }
    device.power_usage().unwrap();
    assert_eq!(error_of(try_connect(&free)), "DriverNotLoaded");
    for fake in [&held, &free] {
        fake.at(25.0);
    }
    device.power_usage().unwrap();
    connect(&free).device_by_index(0).unwrap().power_usage().unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long a call takes is measured")]
fn fields_have_the_configured_latency_and_report_it() {
    let (_fake, nvml) = start("h100x8", "latency: {fields_us: {185: 20000}}");
    let device = nvml.device_by_index(0).unwrap();
    let began = std::time::Instant::now();
    let answers = scoped(&device, &[(185, 0), (186, 0)]);
    assert!(began.elapsed() >= Duration::from_millis(20));
    let reported: Vec<_> = answers.iter().map(|answer| answer.latencyUsec).collect();
    assert_eq!(reported, [20_000, 3]);
}
