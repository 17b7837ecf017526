//! GPM: the mean between two samples, of a GPU and of an instance, and no value between two that are too close.

use nvml_wrapper::{GpmSample, Nvml, enums::gpm::GpmMetricId, error::NvmlError, gpm::gpm_metrics_get};
use pulsetrain_tests::FakeNvml;

use crate::fake_nvml::driver::connect;

#[test]
fn gpm_metric_is_the_mean_between_its_two_samples() {
    let fake = FakeNvml::start("h100x8");
    let nvml = connect(&fake);
    let device = nvml.device_by_index(0).unwrap();
    assert!(device.gpm_support().unwrap());
    fake.at(10.0);
    let first = device.gpm_sample().unwrap();
    fake.at(30.0);
    let second = device.gpm_sample().unwrap();
    // A linear ramp from 20 % to 40 %, and a full period of a sine around 60 %.
    let read = means(
        &nvml,
        &first,
        &second,
        &[GpmMetricId::AnyTensorUtil, GpmMetricId::GraphicsUtil],
    );
    assert_eq!(read, ["Ok(30.0)", "Ok(60.0)"]);
}

#[test]
fn gpm_traffic_is_in_mebibytes_per_second() {
    let fake = FakeNvml::start("h100x8");
    let nvml = connect(&fake);
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
    let fake = FakeNvml::start("h100x8");
    let nvml = connect(&fake);
    let device = nvml.device_by_index(0).unwrap();
    fake.at(10.0);
    let first = device.gpm_sample().unwrap();
    fake.at(10.05);
    let second = device.gpm_sample().unwrap();
    assert_eq!(
        means(&nvml, &first, &second, &[GpmMetricId::SmUtil]),
        ["Err(NoData)"]
    );
    let backwards = gpm_metrics_get(&nvml, &second, &first, &[GpmMetricId::SmUtil]);
    assert!(matches!(backwards, Err(NvmlError::InvalidArg)), "{backwards:?}");
}

#[test]
fn mig_instance_has_separate_gpm_metrics() {
    let fake = FakeNvml::start("mig");
    let nvml = connect(&fake);
    let device = nvml.device_by_index(0).unwrap();
    let first = device.gpm_mig_sample(1).unwrap();
    let other = device.gpm_mig_sample(2).unwrap();
    fake.at(10.0);
    let second = device.gpm_mig_sample(1).unwrap();
    let asked = [GpmMetricId::SmUtil, GpmMetricId::PcieTxPerSec];
    assert_eq!(
        means(&nvml, &first, &second, &asked),
        ["Ok(20.0)", "Err(NotSupported)"]
    );
    let mixed = gpm_metrics_get(&nvml, &other, &second, &asked);
    assert!(matches!(mixed, Err(NvmlError::InvalidArg)), "{mixed:?}");
    assert!(matches!(device.gpm_mig_sample(7), Err(NvmlError::InvalidArg)));
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
