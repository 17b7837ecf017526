//! What wandb measures of the machine by itself (`core/pkg/monitor` of wandb): of its keys, those that the registry has a name
//! for. The others are kept under their own.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{attribute, metric};

use crate::tags::{Capture, TagRow, keep, tag};

/// The number of a GPU is all that is known of it.
const GPU: &[Capture] = &[(0, &attribute::GPU_ID), (0, &attribute::GPU_INDEX)];

const MHZ: f64 = 1e6;

const fn clock(domain: &'static str) -> Attribute<'static> {
    (&attribute::GPU_CLOCK_DOMAIN, Value::Text(domain))
}

const fn task(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_TASK, Value::Text(name))
}

const fn direction(name: &'static str) -> Attribute<'static> {
    (&attribute::GPU_IO_DIRECTION, Value::Text(name))
}

const CURRENT: Attribute<'static> = (&attribute::GPU_LINK_READING, Value::Text("current"));
const MOST: Attribute<'static> = (&attribute::GPU_LINK_READING, Value::Text("max"));

pub(super) static ROWS: &[TagRow] = &[
    tag("gpu.{}.gpu", &metric::GPU_UTILIZATION)
        .divided_by(100.0)
        .capturing(GPU)
        .with(&[task("general")]),
    tag("gpu.{}.encoderUtilization", &metric::GPU_UTILIZATION)
        .divided_by(100.0)
        .capturing(GPU)
        .with(&[task("encoder")]),
    tag("gpu.{}.memory", &metric::GPU_MEMORY_ACTIVITY)
        .divided_by(100.0)
        .capturing(GPU),
    tag("gpu.{}.memoryAllocatedBytes", &metric::GPU_MEMORY_USED).capturing(GPU),
    tag("gpu.{}.temp", &metric::GPU_TEMPERATURE).capturing(GPU),
    tag("gpu.{}.powerWatts", &metric::GPU_POWER).capturing(GPU),
    tag("gpu.{}.enforcedPowerLimitWatts", &metric::GPU_POWER_LIMIT)
        .capturing(GPU)
        .with(&[(&attribute::GPU_POWER_LIMIT_KIND, Value::Text("enforced"))]),
    tag("gpu.{}.smClock", &metric::GPU_CLOCK_FREQUENCY)
        .times(MHZ)
        .capturing(GPU)
        .with(&[clock("sm")]),
    tag("gpu.{}.graphicsClock", &metric::GPU_CLOCK_FREQUENCY)
        .times(MHZ)
        .capturing(GPU)
        .with(&[clock("graphics")]),
    tag("gpu.{}.memoryClock", &metric::GPU_CLOCK_FREQUENCY)
        .times(MHZ)
        .capturing(GPU)
        .with(&[clock("memory")]),
    tag("gpu.{}.pcieLinkGen", &metric::GPU_PCIE_GENERATION)
        .capturing(GPU)
        .with(&[CURRENT]),
    tag("gpu.{}.pcieLinkWidth", &metric::GPU_PCIE_WIDTH)
        .capturing(GPU)
        .with(&[CURRENT]),
    tag("gpu.{}.maxPcieLinkGen", &metric::GPU_PCIE_GENERATION)
        .capturing(GPU)
        .with(&[MOST]),
    tag("gpu.{}.maxPcieLinkWidth", &metric::GPU_PCIE_WIDTH)
        .capturing(GPU)
        .with(&[MOST]),
    // By DCGM, where it runs.
    tag("gpu.{}.smActive", &metric::GPU_SM_ACTIVE)
        .divided_by(100.0)
        .capturing(GPU),
    tag("gpu.{}.smOccupancy", &metric::GPU_SM_OCCUPANCY)
        .divided_by(100.0)
        .capturing(GPU),
    tag("gpu.{}.pcieRxBytes", &metric::GPU_PCIE_THROUGHPUT)
        .capturing(GPU)
        .with(&[direction("receive")]),
    tag("gpu.{}.pcieTxBytes", &metric::GPU_PCIE_THROUGHPUT)
        .capturing(GPU)
        .with(&[direction("transmit")]),
    tag("gpu.{}.fanSpeed", &metric::GPU_FAN_SPEED_RATIO)
        .divided_by(100.0)
        .capturing(GPU),
    // Of the host, of which other programs tell more.
    keep("gpu.{}"),
    keep("cpu"),
    keep("cpu.{}"),
    keep("memory_percent"),
    keep("memory.{}"),
    keep("proc.{}"),
    keep("disk.{}"),
    keep("network.{}"),
];
