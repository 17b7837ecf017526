//! Converts sampled GPU metrics to gauges of their GPU.

use std::{collections::BTreeMap, io};

use pulsetrain_otlp::{Signal, write::Buffer};

use super::{
    NsightConversion,
    batches::Batches,
    database::{Column, NsightExport},
    names::Owner,
    tables::SAMPLES_TABLE,
};
use crate::from_perfetto::resource_batches::MESSAGE_BYTES;

/// The scope of the gauges.
const SCOPE: &str = "gpu_metrics";

/// The bits of a type that contain the number of the GPU.
const GPU: i64 = 0xff;

/// Fields of `Metric`, `Gauge` and `NumberDataPoint` (proto/metrics/v1/metrics.proto).
mod field {
    pub(super) const NAME: u32 = 1;
    pub(super) const UNIT: u32 = 3;
    pub(super) const GAUGE: u32 = 5;
    pub(super) const POINTS: u32 = 1;
    pub(super) const TIME: u32 = 3;
    pub(super) const DOUBLE: u32 = 4;
}

/// Sends every sample. `start` is the origin of the times of the export.
pub(super) fn send<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
    export: &NsightExport,
    start: u64,
    batches: &mut Batches<'_, D>,
    conversion: &mut NsightConversion,
) -> Result<(), E> {
    let names = names(export, conversion);
    let mut waiting: BTreeMap<(i64, i64), Buffer> = BTreeMap::new();
    let mut bytes = 0;
    let mut undated = 0;
    let columns = ["timestamp", "typeId", "metricId", "value"].map(Column::Plain);
    export.each(SAMPLES_TABLE, &columns, &mut conversion.errors, |cells| {
        let (Some(time), Some(value)) = (cells.int(0), cells.real(3)) else {
            undated += 1;
            return Ok(());
        };
        let mut point = Buffer::default();
        point.fixed64(field::TIME, start.saturating_add_signed(time));
        point.double(field::DOUBLE, value);
        let key = (cells.int(1).unwrap_or_default(), cells.int(2).unwrap_or_default());
        let points = waiting.entry(key).or_default();
        points.delimited(field::POINTS, point.as_slice());
        bytes += point.len();
        if bytes > MESSAGE_BYTES {
            bytes = 0;
            return send_points(std::mem::take(&mut waiting), &names, batches);
        }
        Ok(())
    })?;
    if undated > 0 {
        let problem = format!("{undated} rows of {SAMPLES_TABLE} have no time or no value");
        conversion.errors.push(problem);
    }
    send_points(waiting, &names, batches)
}

fn send_points<E, D: FnMut(Signal, Vec<u8>) -> Result<(), E>>(
    waiting: BTreeMap<(i64, i64), Buffer>,
    names: &BTreeMap<(i64, i64), String>,
    batches: &mut Batches<'_, D>,
) -> Result<(), E> {
    for ((kind, metric), points) in waiting {
        let full = names.get(&(kind, metric)).or_else(|| names.get(&(0, metric)));
        let full = full.cloned();
        let full = full.unwrap_or_else(|| format!("GPU metric {metric}"));
        let (name, unit) = name_and_unit(&full);
        let mut out = Buffer::default();
        out.text(field::NAME, name);
        out.text(field::UNIT, unit);
        out.delimited(field::GAUGE, points.as_slice());
        let owner = Owner::Device(kind & GPU);
        batches.push(Signal::Metrics, owner, SCOPE, out.as_slice())?;
    }
    Ok(())
}

/// Returns the names of metrics by their type and number.
fn names(export: &NsightExport, conversion: &mut NsightConversion) -> BTreeMap<(i64, i64), String> {
    let mut names = BTreeMap::new();
    let columns = ["typeId", "metricId", "metricName"].map(Column::Plain);
    let table = "TARGET_INFO_GPU_METRICS";
    let read: io::Result<()> = export.each(table, &columns, &mut conversion.errors, |cells| {
        if let (Some(metric), Some(name)) = (cells.int(1), cells.text(2)) {
            let kind = cells.int(0).unwrap_or_default();
            names.insert((kind, metric), name.into_owned());
        }
        Ok(())
    });
    debug_assert!(read.is_ok(), "nothing in the closure fails");
    names
}

/// Splits `SMs Active [Throughput %]` into the name and the unit.
fn name_and_unit(full: &str) -> (&str, &str) {
    let parts = full.strip_suffix(']').and_then(|full| full.rsplit_once(" ["));
    let Some((name, unit)) = parts else {
        return (full, "");
    };
    match unit {
        "Throughput %" => (name, "%"),
        unit => (name, unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_unit_is_parsed_from_the_brackets_of_its_name() {
        for (full, expected) in [
            ("SMs Active [Throughput %]", ("SMs Active", "%")),
            ("GPC Clock Frequency [MHz]", ("GPC Clock Frequency", "MHz")),
            ("Plain", ("Plain", "")),
        ] {
            assert_eq!(name_and_unit(full), expected);
        }
    }
}
