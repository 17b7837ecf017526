//! The standard names: the OpenTelemetry `hw.*` metric of each `gpu.*` metric, and its component.
//!
//! They are from the semantic conventions of hardware, which are in development (model/hardware/*.yaml).

use pulsetrain_semconv::{Attribute, Metric, attribute as a, metric as m};

use super::{
    known::entry_of,
    store::{Observation, Texts},
    subject::EntityAttributes,
};
use crate::{
    Gpu, GpuAttribution, OwnedAttribute, OwnedValue, Subject, Vendor,
    reading::{Entity, Reading, Sample},
};

/// A component of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Component {
    /// The GPU.
    Gpu,
    /// An instance of it.
    Instance(u32),
    /// A fan of it.
    Fan(i64),
    /// An NVLink or XGMI link of it: a network port.
    Port(i64),
}

/// A value under its standard name.
pub(super) struct HwMetric {
    /// The metric.
    pub(super) metric: &'static Metric,
    /// The component that the value belongs to.
    pub(super) component: Component,
    /// Identifies the series among those of the metric.
    pub(super) texts: Texts,
    /// The value.
    pub(super) entry: Observation,
}

impl Component {
    /// Returns the component of an entity, or `None` for a process, which is not a component.
    pub(super) fn from_entity(entity: Entity) -> Option<Self> {
        match entity {
            Entity::Gpu => Some(Self::Gpu),
            Entity::Instance(index) => Some(Self::Instance(index)),
            Entity::Process(_) => None,
        }
    }
}

impl HwMetric {
    /// Returns the share of the memory in use.
    pub(super) fn memory_utilization(component: Component, share: f64) -> Self {
        Self {
            metric: &m::HW_GPU_MEMORY_UTILIZATION,
            component,
            texts: [None; 2],
            entry: Observation::Now(share),
        }
    }

    /// Returns an increase of the XID errors of a code.
    pub(super) fn xid(kind: &'static str, by: u64) -> Self {
        Self {
            metric: &m::HW_ERRORS,
            component: Component::Gpu,
            texts: [Some((&a::HW_TYPE, "gpu")), Some((&a::ERROR_TYPE, kind))],
            entry: Observation::Grows(by),
        }
    }
}

/// Returns the `hw.*` metric of a reading, or `None`.
pub(super) fn for_reading(reading: &Reading) -> Option<HwMetric> {
    let component = Component::from_entity(reading.entity)?;
    let number = reading.labels.number.map(|(_, number)| number);
    let label = |attribute: &Attribute| label(reading, attribute);
    let is = |metric: &Metric| reading.metric.ordinal == metric.ordinal;
    let of_gpu = Some((&a::HW_TYPE, "gpu"));
    let (metric, component, texts): (_, _, Texts) = if is(&m::GPU_UTILIZATION) {
        let task = label(&a::GPU_TASK).map(|task| (&a::HW_GPU_TASK, task));
        (&m::HW_GPU_UTILIZATION, component, [task, None])
    } else if is(&m::GPU_MEMORY_USED) || is(&m::GPU_MIG_MEMORY_USED) {
        (&m::HW_GPU_MEMORY_USAGE, component, [None; 2])
    } else if is(&m::GPU_MEMORY_LIMIT) || is(&m::GPU_MIG_MEMORY_LIMIT) {
        (&m::HW_GPU_MEMORY_LIMIT, component, [None; 2])
    } else if is(&m::GPU_PCIE_IO) {
        (&m::HW_GPU_IO, component, [direction(reading), None])
    } else if is(&m::GPU_POWER) {
        (&m::HW_POWER, component, [of_gpu, None])
    } else if is(&m::GPU_ENERGY) {
        (&m::HW_ENERGY, component, [of_gpu, None])
    } else if is(&m::GPU_TEMPERATURE) {
        let place = label(&a::GPU_TEMPERATURE_SENSOR).map(|place| (&a::HW_SENSOR_LOCATION, place));
        (&m::HW_TEMPERATURE, component, [place, None])
    } else if is(&m::GPU_TEMPERATURE_LIMIT) {
        let (place, kind) = temperature_limit(label(&a::GPU_TEMPERATURE_LIMIT_KIND)?)?;
        let texts = [
            Some((&a::HW_SENSOR_LOCATION, place)),
            Some((&a::HW_LIMIT_TYPE, kind)),
        ];
        (&m::HW_TEMPERATURE_LIMIT, component, texts)
    } else if is(&m::GPU_FAN_SPEED_RATIO) {
        (&m::HW_FAN_SPEED_RATIO, Component::Fan(number?), [None; 2])
    } else if is(&m::GPU_FAN_SPEED) {
        (&m::HW_FAN_SPEED, Component::Fan(number?), [None; 2])
    } else if is(&m::GPU_NVLINK_PACKETS) {
        (
            &m::HW_NETWORK_PACKETS,
            Component::Port(number?),
            [direction(reading), None],
        )
    } else if is(&m::GPU_NVLINK_IO) || is(&m::GPU_XGMI_IO) {
        (
            &m::HW_NETWORK_IO,
            Component::Port(number?),
            [direction(reading), None],
        )
    } else if is(&m::GPU_NVLINK_UP) || is(&m::GPU_XGMI_UP) {
        (&m::HW_NETWORK_UP, Component::Port(number?), [None; 2])
    } else if is(&m::GPU_NVLINK_SPEED) {
        (
            &m::HW_NETWORK_BANDWIDTH_LIMIT,
            Component::Port(number?),
            [None; 2],
        )
    } else if let Some(kind) = error_kind(reading) {
        let (component, hw_type) = match number {
            Some(link) => (Component::Port(link), "network"),
            None => (component, "gpu"),
        };
        let texts = [Some((&a::HW_TYPE, hw_type)), Some((&a::ERROR_TYPE, kind))];
        (&m::HW_ERRORS, component, texts)
    } else {
        return None;
    };
    let value = match reading.value {
        // `gpu.*` has revolutions per second, like all of its rates; `hw.*` has integer revolutions per minute.
        Sample::Now(per_second) if is(&m::GPU_FAN_SPEED) => Sample::Now((per_second * 60.0).round()),
        value => value,
    };
    Some(HwMetric {
        metric,
        component,
        texts,
        entry: entry_of(reading.metric, value, reading.cadence)?,
    })
}

fn label(reading: &Reading, attribute: &Attribute) -> Option<&'static str> {
    let same = |label: &&(&'static Attribute, &'static str)| label.0.name == attribute.name;
    reading.labels.fixed.iter().find(same).map(|(_, value)| *value)
}

fn direction(reading: &Reading) -> Option<(&'static Attribute, &'static str)> {
    label(reading, &a::GPU_IO_DIRECTION).map(|direction| (&a::NETWORK_IO_DIRECTION, direction))
}

/// Returns the sensor and the standard type of a temperature limit. Other limits, such as that up to which the fan is quiet, have
/// no standard type.
fn temperature_limit(kind: &str) -> Option<(&'static str, &'static str)> {
    match kind {
        "shutdown" => Some(("gpu", "high.critical")),
        "slowdown" => Some(("gpu", "high.degraded")),
        "memory_max" => Some(("memory", "high.degraded")),
        _ => None,
    }
}

/// Returns the `error.type` of a counter of GPU errors: PCI Express replays, memory errors of all locations since the driver was
/// loaded, and NVLink errors. NVLink errors are counted for all links together on GPUs before Hopper, and for each link, which is
/// a network port, on later ones.
fn error_kind(reading: &Reading) -> Option<&'static str> {
    let label = |attribute| label(reading, attribute);
    let is = |metric: &Metric| reading.metric.ordinal == metric.ordinal;
    if is(&m::GPU_PCIE_REPLAYS) {
        return Some("pcie_replay");
    }
    if is(&m::GPU_ECC_ERRORS) {
        return label(&a::GPU_ECC_SEVERITY);
    }
    if !is(&m::GPU_NVLINK_ERRORS) {
        return None;
    }
    match (label(&a::ERROR_TYPE)?, reading.labels.number.is_some()) {
        ("crc_flit", false) => Some("nvlink_crc_flit"),
        ("crc_data", false) => Some("nvlink_crc_data"),
        ("replay", false) => Some("nvlink_replay"),
        ("recovery", false) => Some("nvlink_recovery"),
        ("ecc", false) => Some("nvlink_ecc"),
        ("dl_crc", true) => Some("nvlink_crc"),
        ("dl_replay", true) => Some("nvlink_replay"),
        ("dl_recovery" | "recovery_attempt", true) => Some("nvlink_recovery"),
        ("recovery_failed", true) => Some("nvlink_recovery_failed"),
        ("symbol", true) => Some("nvlink_symbol"),
        _ => None,
    }
}

/// Returns the attributes of a component.
pub(super) fn attributes(
    gpu: &Gpu,
    component: Component,
    driver_version: &str,
    attribution: &mut dyn GpuAttribution,
) -> EntityAttributes {
    let mut carried = Vec::new();
    let mut text = |attribute: &'static Attribute, value: &str| {
        if !value.is_empty() {
            carried.push((attribute, OwnedValue::from(value)));
        }
    };
    match component {
        Component::Gpu => {
            text(&a::HW_ID, &gpu.uuid);
            text(&a::HW_NAME, &format!("GPU {}", gpu.index));
            text(&a::HW_MODEL, &gpu.name);
            text(&a::HW_VENDOR, gpu.vendor.as_str());
            text(&a::HW_SERIAL_NUMBER, gpu.serial.as_deref().unwrap_or_default());
            text(&a::HW_DRIVER_VERSION, driver_version);
            text(
                &a::HW_FIRMWARE_VERSION,
                gpu.vbios_version.as_deref().unwrap_or_default(),
            );
        }
        Component::Instance(index) => {
            let instance = gpu.instances.iter().find(|instance| instance.index == index);
            text(&a::HW_ID, instance.map_or("", |instance| &instance.uuid));
            text(&a::HW_NAME, &format!("GPU {} MIG {index}", gpu.index));
            text(&a::HW_PARENT, &gpu.uuid);
            text(&a::HW_VENDOR, gpu.vendor.as_str());
        }
        Component::Fan(number) => part(gpu, "fan", number, &mut text),
        Component::Port(number) => {
            let kind = match gpu.vendor {
                Vendor::Amd => "xgmi",
                Vendor::Nvidia => "nvlink",
            };
            part(gpu, kind, number, &mut text);
        }
    }
    belong(gpu, component, attribution, &mut carried);
    carried.into()
}

fn part(gpu: &Gpu, kind: &str, number: i64, text: &mut impl FnMut(&'static Attribute, &str)) {
    text(&a::HW_ID, &format!("{}/{kind}/{number}", gpu.uuid));
    text(&a::HW_NAME, &format!("GPU {} {kind} {number}", gpu.index));
    text(&a::HW_PARENT, &gpu.uuid);
}

fn belong(
    gpu: &Gpu,
    component: Component,
    attribution: &mut dyn GpuAttribution,
    carried: &mut Vec<OwnedAttribute>,
) {
    let subject = match component {
        Component::Instance(index) => gpu
            .instances
            .iter()
            .find(|instance| instance.index == index)
            .map_or(Subject::Gpu(gpu), |instance| Subject::Instance(gpu, instance)),
        _ => Subject::Gpu(gpu),
    };
    attribution.attributes(subject, carried);
}
