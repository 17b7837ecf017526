//! GPM: the mean between two samples, of a GPU and of an instance, and no value between two that are too close.

use nvml_wrapper::{GpmSample, Nvml, enums::gpm::GpmMetricId, gpm::gpm_metrics_get};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn gpm_metric_is_the_mean_between_its_two_samples() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    assert!(device.gpm_support().unwrap());
    fake.at(10.0);
    let first = device.gpm_sample().unwrap();
    fake.at(30.0);
    let second = device.gpm_sample().unwrap();
    // A linear ramp from 20 % to 40 %, and a full period of a sine around 60 %.
    let asked = [GpmMetricId::AnyTensorUtil, GpmMetricId::GraphicsUtil];
    let read = means(&nvml, &first, &second, &asked);
    assert_eq!(read, ["Ok(30.0)", "Ok(60.0)"]);
}

#[test]
fn gpm_traffic_is_in_mebibytes_per_second() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let first = device.gpm_sample().unwrap();
    fake.at(1.0);
    let second = device.gpm_sample().unwrap();
    // 2 GB/s, as in the byte counter of the same scenario.
    let read = means(&nvml, &first, &second, &[GpmMetricId::PcieTxPerSec]);
    assert_eq!(read, ["Ok(1907.3486328125)"]);
}

#[test]
fn gpm_samples_too_close_together_yield_no_data() {
    let (fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    fake.at(10.0);
    let first = device.gpm_sample().unwrap();
    fake.at(10.05);
    let second = device.gpm_sample().unwrap();
    let asked = [GpmMetricId::SmUtil];
    assert_eq!(means(&nvml, &first, &second, &asked), ["Err(NoData)"]);
    let backwards = gpm_metrics_get(&nvml, &second, &first, &asked);
    assert_eq!(error_of(backwards), "InvalidArg");
}

#[test]
fn mig_instance_has_separate_gpm_metrics() {
    let (fake, nvml) = start("mig", "");
    let device = nvml.device_by_index(0).unwrap();
    let first = device.gpm_mig_sample(1).unwrap();
    let other = device.gpm_mig_sample(2).unwrap();
    fake.at(10.0);
    let second = device.gpm_mig_sample(1).unwrap();
    let asked = [GpmMetricId::SmUtil, GpmMetricId::PcieTxPerSec];
    let read = means(&nvml, &first, &second, &asked);
    assert_eq!(read, ["Ok(20.0)", "Err(NotSupported)"]);
    let mixed = gpm_metrics_get(&nvml, &other, &second, &asked);
    assert_eq!(error_of(mixed), "InvalidArg");
    assert_eq!(error_of(device.gpm_mig_sample(7)), "InvalidArg");
}

fn means<'nvml>(
    nvml: &'nvml Nvml,
    first: &GpmSample<'nvml>,
    second: &GpmSample<'nvml>,
    asked: &[GpmMetricId],
) -> Vec<String> {
    let read = gpm_metrics_get(nvml, first, second, asked).expect("the samples are of one GPU");
    read.into_iter()
        .map(|metric| format!("{:?}", metric.map(|metric| metric.value)))
        .collect()
}
