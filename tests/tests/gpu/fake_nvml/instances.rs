//! MIG: instances with a parent, an index, ids and sizes, and a partition that changes.

use nvml_wrapper::{Device, Nvml};

use crate::fake_nvml::driver::{error_of, start};

#[test]
fn mig_instances_have_a_parent_and_separate_memory() {
    let (_fake, nvml) = start("mig", "");
    let gpu = nvml.device_by_index(0).unwrap();
    assert_eq!(
        (gpu.mig_mode().unwrap().current, gpu.mig_device_count().unwrap()),
        (1, 7)
    );
    let small = gpu.mig_device_by_index(0).unwrap();
    assert!(small.mig_is_mig_device_handle().unwrap());
    assert!(!gpu.mig_is_mig_device_handle().unwrap());
    assert_eq!(
        small.mig_parent_device().unwrap().uuid().unwrap(),
        gpu.uuid().unwrap()
    );
    assert_eq!(small.memory_info().unwrap().used, 4_294_967_296);
    assert_eq!(small.attributes().unwrap().multiprocessor_count, 16);
    assert_eq!(numbers(&small), (1, 0));
    let by_id = nvml
        .device_by_uuid("MIG-00000002-1f2e-5d3c-8b4a-000000000002")
        .unwrap();
    assert_eq!(numbers(&by_id), (2, 0));
    assert_eq!(error_of(small.power_usage()), "NotSupported");
    assert_eq!(error_of(gpu.utilization_rates()), "NotSupported");
    assert_eq!(error_of(gpu.mig_device_by_index(3)), "NotFound");
    assert_eq!(error_of(gpu.mig_device_by_index(7)), "InvalidArg");
}

#[test]
fn process_is_listed_on_its_gpu_and_its_mig_instance() {
    let (_fake, nvml) = start("mig", "");
    let gpu = nvml.device_by_index(0).unwrap();
    let pids = |device: &Device| {
        let processes = device.running_compute_processes().expect("processes");
        processes
            .iter()
            .map(|process| (process.pid, process.gpu_instance_id))
            .collect::<Vec<_>>()
    };
    assert_eq!(pids(&gpu), [(5101, Some(1)), (5102, Some(2))]);
    assert_eq!(pids(&gpu.mig_device_by_index(1).unwrap()), [(5102, Some(2))]);
}

#[test]
fn index_of_a_destroyed_mig_instance_is_reused() {
    let (fake, nvml) = start("mig_reshape", "");
    let gpu = nvml.device_by_index(0).unwrap();
    let first = gpu.mig_device_by_index(0).unwrap();
    assert_eq!(named(&nvml), ["1g.10gb", "3g.40gb"]);
    fake.at(10.0);
    assert_eq!(named(&nvml), ["3g.40gb"]);
    assert_eq!(error_of(first.memory_info()), "InvalidArg");
    fake.at(20.0);
    assert_eq!(named(&nvml), ["2g.20gb", "3g.40gb"]);
    assert_eq!(numbers(&gpu.mig_device_by_index(0).unwrap()), (3, 0));
}

fn named(nvml: &Nvml) -> Vec<String> {
    let gpu = nvml.device_by_index(0).expect("a device");
    let instances = (0..7).filter_map(|index| gpu.mig_device_by_index(index).ok());
    let names = instances.map(|instance| instance.name().expect("a name"));
    names
        .map(|name| name.rsplit(' ').next().unwrap_or_default().to_owned())
        .collect()
}

/// Returns the ids of the GPU instance and the compute instance, which the wrapper lacks.
fn numbers(device: &Device) -> (u32, u32) {
    let lib = device.nvml().lib();
    let calls = [
        lib.nvmlDeviceGetGpuInstanceId.as_ref(),
        lib.nvmlDeviceGetComputeInstanceId.as_ref(),
    ];
    let [gpu, compute] = calls.map(|call| {
        let mut number = 0;
        let call = call.expect("the fake driver has the symbol");
        // SAFETY: the handle is the device's own, and the pointer is to a number.
        let code = unsafe { call(device.handle(), &mut number) };
        assert_eq!(code, 0);
        number
    });
    (gpu, compute)
}
