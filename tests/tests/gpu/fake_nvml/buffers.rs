//! The driver's sample buffers and its samples of processes: each with its own timestamp, none twice.

use std::f64::consts::TAU;

use nvml_wrapper::{
    enum_wrappers::device::Sampling,
    enums::device::{SampleValue, UsedGpuMemory},
};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn fake_samples_are_the_readings_at_their_timestamps() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(1.25);
    let samples = device.samples(Sampling::Power, None).unwrap();
    assert_eq!(samples.len(), 13);
    for (number, sample) in samples.iter().enumerate() {
        let second = number as f64 / 10.0;
        assert_eq!(sample.timestamp * 1_000, fake.unix_nanos(second));
        let milliwatts = (500_000.0 + 200_000.0 * (TAU * second / 20.0).sin()) as u32;
        assert!(
            matches!(sample.value, SampleValue::U32(value) if value == milliwatts),
            "{sample:?}"
        );
    }
}

#[test]
fn sample_buffer_returns_samples_after_the_last_seen_timestamp() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(1.0);
    let first = device.samples(Sampling::GpuUtilization, None).unwrap();
    let last_seen = first.last().unwrap().timestamp;
    let none = device.samples(Sampling::GpuUtilization, last_seen);
    assert_eq!(error_of(none), "NotFound");
    fake.at(1.5);
    let samples = device.samples(Sampling::GpuUtilization, last_seen).unwrap();
    let times: Vec<_> = samples.iter().map(|sample| sample.timestamp).collect();
    let expected = [1.1, 1.2, 1.3, 1.4, 1.5].map(|second| fake.unix_nanos(second) / 1_000);
    assert_eq!(times, expected);
}

#[test]
fn full_sample_buffer_keeps_the_newest_samples() {
    let (fake, nvml) = start("h100x8", "");
    fake.at(100.0);
    let device = nvml.device_by_index(0).unwrap();
    let samples = device.samples(Sampling::Power, None).unwrap();
    assert_eq!(samples.len(), 120);
    assert_eq!(samples[0].timestamp * 1_000, fake.unix_nanos(88.1));
    assert_eq!(samples[119].timestamp * 1_000, fake.unix_nanos(100.0));
}

#[test]
fn process_utilization_is_sampled_every_second_as_processes_start_and_stop() {
    let (fake, nvml) = start("unseen_processes", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(12.3);
    let busy = device.process_utilization_stats(None).unwrap();
    let shares: Vec<_> = busy
        .iter()
        .map(|sample| (sample.pid, sample.sm_util, sample.mem_util))
        .collect();
    assert_eq!(shares, [(4_100_001, 55, 20), (4_100_003, 10, 2)]);
    assert_eq!(busy[0].timestamp * 1_000, fake.unix_nanos(12.0));
    let none = device.process_utilization_stats(busy[0].timestamp);
    assert_eq!(error_of(none), "NotFound");
    let pids_at = |second| {
        fake.at(second);
        let processes = device.running_compute_processes().expect("processes");
        processes.iter().map(|process| process.pid).collect::<Vec<_>>()
    };
    assert_eq!(pids_at(5.0), [4_100_001, 4_100_002]);
    assert_eq!(pids_at(25.0), [4_100_002, 4_100_003]);
    let unknown = device.running_compute_processes().unwrap().remove(0);
    assert_eq!(unknown.used_gpu_memory, UsedGpuMemory::Unavailable);
}

#[test]
fn idle_process_is_listed_without_utilization_samples() {
    let idle = "gpus: {each: {\"0\": {processes: [{pid: 1, sm_percent: 0}, {pid: 2, sm_percent: 7}]}}}";
    let (fake, nvml) = start("h100x8", idle);
    let device = nvml.device_by_index(0).unwrap();
    fake.at(2.0);
    assert_eq!(device.running_compute_processes().unwrap().len(), 2);
    let busy = device.process_utilization_stats(None).unwrap();
    assert_eq!(busy.iter().map(|sample| sample.pid).collect::<Vec<_>>(), [2]);
}

#[test]
fn accounting_reports_past_usage_of_a_process_when_enabled() {
    let on = "gpus: {all: {readings: {mode.accounting: 1}}}";
    let (fake, nvml) = start("unseen_processes", on);
    let (_off, nvml_off) = start("unseen_processes", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(25.0);
    let stats = device.accounting_stats_for(4_100_001).unwrap();
    assert_eq!(
        (stats.gpu_utilization, stats.max_memory_usage),
        (Some(55), Some(42_949_672_960))
    );
    assert_eq!((stats.time, stats.is_running), (20_000, false));
    assert_eq!(error_of(device.accounting_stats_for(1)), "NotFound");
    let device = nvml_off.device_by_index(0).unwrap();
    assert_eq!(error_of(device.accounting_stats_for(4_100_002)), "NotSupported");
}
