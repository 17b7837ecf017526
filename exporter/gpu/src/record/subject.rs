//! The subjects of series: a GPU, an instance of it, or a process on it, each with the attributes that all its series carry.

use std::sync::Arc;

use pulsetrain_otlp::write::Attribute;
use pulsetrain_semconv::attribute;

use crate::{Gpu, GpuAttribution, OwnedAttribute, OwnedValue, Subject, reading::Entity};

/// The attributes that all series of a subject carry.
pub(super) type EntityAttributes = Arc<[OwnedAttribute]>;

/// Returns the attributes of an entity of a GPU, in the order in which they are written.
pub(super) fn attributes_of(
    gpu: &Gpu,
    entity: Entity,
    attribution: &mut dyn GpuAttribution,
) -> EntityAttributes {
    let mut carried = vec![
        (&attribute::GPU_ID, OwnedValue::from(gpu.uuid.as_str())),
        (&attribute::GPU_INDEX, OwnedValue::Int(i64::from(gpu.index))),
    ];
    match entity {
        Entity::Gpu => attribution.attributes(Subject::Gpu(gpu), &mut carried),
        Entity::Instance(index) => {
            if let Some(instance) = gpu.instances.iter().find(|instance| instance.index == index) {
                add_instance(instance.gpu_instance_id, &instance.profile, &mut carried);
                let compute_instance = i64::from(instance.compute_instance_id);
                carried.push((
                    &attribute::GPU_MIG_COMPUTE_INSTANCE_ID,
                    OwnedValue::Int(compute_instance),
                ));
                attribution.attributes(Subject::Instance(gpu, instance), &mut carried);
            }
        }
        Entity::Process(pid) => {
            carried.push((&attribute::PROCESS_PID, OwnedValue::Int(i64::from(pid))));
            if let Some(process) = gpu.processes.iter().find(|process| process.pid == pid) {
                let instance = process.gpu_instance_id.and_then(|id| {
                    gpu.instances
                        .iter()
                        .find(|instance| instance.gpu_instance_id == id)
                });
                if let Some(instance) = instance {
                    add_instance(instance.gpu_instance_id, &instance.profile, &mut carried);
                }
                attribution.attributes(Subject::Process(gpu, process), &mut carried);
            }
        }
    }
    carried.into()
}

fn add_instance(id: u32, profile: &str, carried: &mut Vec<OwnedAttribute>) {
    carried.push((&attribute::GPU_MIG_INSTANCE_ID, OwnedValue::Int(i64::from(id))));
    carried.push((&attribute::GPU_MIG_PROFILE, OwnedValue::from(profile)));
}

/// Returns the attributes in the form in which they are written.
pub(super) fn written(carried: &EntityAttributes) -> impl Iterator<Item = Attribute<'_>> {
    carried
        .iter()
        .map(|(attribute, value)| (*attribute, value.as_value()))
}
