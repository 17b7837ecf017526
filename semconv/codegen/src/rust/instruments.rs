//! `generated/instruments.rs`: one function per metric, which builds its instrument on a meter.

use super::{HEADER, literal};
use crate::grammar::{Instrument, MetricDef, Number};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let functions: String = registry
        .metrics
        .iter()
        .map(|entry| function(&entry.def))
        .collect();
    format!(
        "//! Typed instruments over the `opentelemetry` API, one function a metric.\n\
         //!\n\
         //! For programs that already own a `MeterProvider`. Each call asks the meter for the instrument: keep what it returns.\n\n{HEADER}\n\
         use opentelemetry::metrics::{{Counter, Gauge, Histogram, Meter, UpDownCounter}};\n\n\
         use super::metric;\n\n{functions}"
    )
}

fn function(metric: &MetricDef) -> String {
    let number = metric
        .annotations
        .code_generation
        .metric_value_type
        .unwrap_or(Number::Double);
    let (kind, builder) = api(metric.instrument, number);
    let constant = literal::constant(&metric.name.value);
    let bounds = match metric.instrument {
        Instrument::Histogram => format!(".with_boundaries(metric::{constant}.bounds.to_vec())"),
        _ => String::new(),
    };
    format!(
        "{}pub fn {}(meter: &Meter) -> {kind} {{\n\
         meter.{builder}(metric::{constant}.name).with_unit(metric::{constant}.unit)\
         .with_description(metric::{constant}.brief){bounds}.build()\n}}\n\n",
        literal::doc(&format!("Builds the instrument of [`metric::{constant}`].")),
        constant.to_lowercase(),
    )
}

/// Returns `tests/generated/record.rs`: every instrument, built and used once, so that a test can check the exported metrics.
pub(super) fn record_one_of_each(registry: &Registry) -> String {
    let calls: String = registry.metrics.iter().map(|entry| call(&entry.def)).collect();
    format!(
        "//! Builds every instrument and records one value with it.\n\n{HEADER}\n\
         use opentelemetry::metrics::Meter;\n\
         use pulsetrain_semconv::instruments;\n\n\
         pub(crate) fn record_one_of_each(meter: &Meter) {{\n{calls}}}\n"
    )
}

fn call(metric: &MetricDef) -> String {
    let number = metric
        .annotations
        .code_generation
        .metric_value_type
        .unwrap_or(Number::Double);
    let value = if number == Number::Int { "1" } else { "1.0" };
    let method = match metric.instrument {
        Instrument::Counter | Instrument::UpDownCounter => "add",
        Instrument::Gauge | Instrument::Histogram => "record",
    };
    let function = literal::constant(&metric.name.value).to_lowercase();
    format!("instruments::{function}(meter).{method}({value}, &[]);\n")
}

/// Returns the type of an instrument and the method of `Meter` that starts its builder.
fn api(instrument: Instrument, number: Number) -> (&'static str, &'static str) {
    match (instrument, number) {
        (Instrument::Counter, Number::Int) => ("Counter<u64>", "u64_counter"),
        (Instrument::Counter, Number::Double) => ("Counter<f64>", "f64_counter"),
        (Instrument::UpDownCounter, Number::Int) => ("UpDownCounter<i64>", "i64_up_down_counter"),
        (Instrument::UpDownCounter, Number::Double) => ("UpDownCounter<f64>", "f64_up_down_counter"),
        (Instrument::Gauge, Number::Int) => ("Gauge<i64>", "i64_gauge"),
        (Instrument::Gauge, Number::Double) => ("Gauge<f64>", "f64_gauge"),
        (Instrument::Histogram, Number::Int) => ("Histogram<u64>", "u64_histogram"),
        (Instrument::Histogram, Number::Double) => ("Histogram<f64>", "f64_histogram"),
    }
}
