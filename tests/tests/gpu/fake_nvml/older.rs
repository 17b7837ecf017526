//! A consumer card with an older driver: missing symbols and unsupported calls.

use nvml_wrapper::{
    enum_wrappers::device::{Clock, EccCounter, MemoryError},
    error::NvmlError,
};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn older_card_supports_basic_calls_and_rejects_the_rest() {
    let (fake, nvml) = start("geforce", "");
    fake.at(6.0);
    let device = nvml.device_by_index(0).unwrap();
    assert_eq!(device.name().unwrap(), "NVIDIA GeForce GTX 1080 Ti");
    assert_eq!(device.utilization_rates().unwrap().gpu, 95);
    assert_eq!(device.power_usage().unwrap(), 240_000);
    assert_eq!(device.fan_speed(0).unwrap(), 35);
    assert_eq!(device.max_clock_info(Clock::Memory).unwrap(), 5505);
    assert_eq!(device.running_compute_processes_v2().unwrap().len(), 1);
    for refused in [
        device.total_energy_consumption().err(),
        device
            .total_ecc_errors(MemoryError::Corrected, EccCounter::Volatile)
            .err(),
        device.serial().err(),
        device.mig_mode().err(),
        device.link_wrapper_for(0).is_active().err(),
    ] {
        assert!(matches!(refused, Some(NvmlError::NotSupported)), "{refused:?}");
    }
    let missing = device.running_compute_processes();
    assert!(error_of(missing).starts_with("FailedToLoadSymbol"));
}
