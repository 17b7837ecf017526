//! `generated/instruments.rs`: one row per metric, for the function that builds its instrument on a meter.

use super::{HEADER, literal, row};
use crate::grammar::{Instrument, MetricDef, Number};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let rows = registry.metrics.iter().map(|entry| function(&entry.def));
    format!(
        "//! Typed instruments over the `opentelemetry` API, one function a metric.\n\
         //!\n\
         //! For programs that already own a `MeterProvider`. Each call asks the meter for the instrument: keep what it returns.\n\n{HEADER}\n\
         use opentelemetry::metrics::{{Counter, Gauge, Histogram, Meter, UpDownCounter}};\n\n\
         use super::metric;\nuse crate::instrument::instruments;\n\n{}",
        row::table("instruments", rows)
    )
}

fn function(metric: &MetricDef) -> String {
    let constant = literal::constant(&metric.name.value);
    let number = match (metric.instrument, metric.number()) {
        (_, Number::Double) => "f64",
        (Instrument::Counter | Instrument::Histogram, Number::Int) => "u64",
        (Instrument::UpDownCounter | Instrument::Gauge, Number::Int) => "i64",
    };
    let function = constant.to_lowercase();
    format!(
        "    {function}({constant}) -> {:?}<{number}>;\n",
        metric.instrument
    )
}
