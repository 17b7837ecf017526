//! The properties of a GPU, as attributes of `gpu.info`, a metric that is always 1.

use pulsetrain_semconv::attribute as a;

use super::subject::{EntityAttributes, attributes_of};
use crate::{Driver, Gpu, GpuAttribution, OwnedAttribute, OwnedValue, reading::Entity};

/// Returns the attributes of `gpu.info`.
pub(super) fn attributes(
    gpu: &Gpu,
    entity: Entity,
    driver: &Driver,
    attribution: &mut dyn GpuAttribution,
) -> EntityAttributes {
    let mut facts: Vec<OwnedAttribute> = attributes_of(gpu, entity, attribution).to_vec();
    let mut text = |attribute, value: &str| {
        if !value.is_empty() {
            facts.push((attribute, OwnedValue::from(value)));
        }
    };
    text(&a::GPU_NAME, &gpu.name);
    text(
        &a::GPU_ARCHITECTURE,
        gpu.architecture.as_deref().unwrap_or_default(),
    );
    text(&a::GPU_PCI_ADDRESS, &gpu.pci_bus_id);
    text(&a::GPU_SERIAL_NUMBER, gpu.serial.as_deref().unwrap_or_default());
    text(
        &a::GPU_VBIOS_VERSION,
        gpu.vbios_version.as_deref().unwrap_or_default(),
    );
    text(&a::GPU_NVLINK_VERSION, gpu.nvlink_version.unwrap_or_default());
    for (attribute, mode) in [
        (&a::GPU_COMPUTE_PARTITION, &gpu.compute_partition),
        (&a::GPU_MEMORY_PARTITION, &gpu.memory_partition),
    ] {
        text(attribute, mode.as_deref().unwrap_or_default());
    }
    text(&a::GPU_DRIVER_VERSION, &driver.version);
    if let Entity::Instance(index) = entity {
        let instance = gpu.instances.iter().find(|instance| instance.index == index);
        text(&a::GPU_MIG_UUID, instance.map_or("", |instance| &instance.uuid));
    }
    if let Some(fabric) = &gpu.fabric {
        text(&a::GPU_FABRIC_CLUSTER_UUID, &fabric.cluster_uuid);
        facts.push((&a::GPU_FABRIC_CLIQUE_ID, i64::from(fabric.clique_id).into()));
    }
    if let Some(platform) = &gpu.platform {
        if !platform.chassis_serial_number.is_empty() {
            let serial_number = OwnedValue::from(platform.chassis_serial_number.as_str());
            facts.push((&a::GPU_PLATFORM_CHASSIS_SERIAL_NUMBER, serial_number));
        }
        for (attribute, number) in [
            (&a::GPU_PLATFORM_SLOT, platform.slot),
            (&a::GPU_PLATFORM_TRAY, platform.tray),
            (&a::GPU_PLATFORM_HOST, platform.host),
            (&a::GPU_PLATFORM_MODULE, platform.module),
        ] {
            facts.push((attribute, i64::from(number).into()));
        }
    }
    if driver.cuda_version > 0 {
        facts.push((&a::GPU_CUDA_DRIVER_VERSION, i64::from(driver.cuda_version).into()));
    }
    if let Some((major, minor)) = gpu.compute_capability {
        facts.push((&a::GPU_COMPUTE_CAPABILITY_MAJOR, i64::from(major).into()));
        facts.push((&a::GPU_COMPUTE_CAPABILITY_MINOR, i64::from(minor).into()));
    }
    facts.into()
}
