//! Instruments of the `opentelemetry` API from definitions, and the macro of the generated functions that return them.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};

use crate::definition::Metric;

/// An instrument of the API that a meter builds from a metric's definition.
pub(crate) trait MeterInstrument {
    /// Builds the instrument.
    fn new(meter: &Meter, metric: &Metric) -> Self;

    /// Records a value of 1.
    #[cfg(test)]
    fn record_one(&self);
}

/// Implements [`MeterInstrument`] for a type of instrument: the method of `Meter` and the method that records.
macro_rules! meter_instruments {
    ($($kind:ident<$number:ty>: $builder:ident$(.$boundaries:ident)?, $record:ident;)*) => {$(
        impl MeterInstrument for $kind<$number> {
            fn new(meter: &Meter, metric: &Metric) -> Self {
                meter
                    .$builder(metric.name)
                    .with_unit(metric.unit)
                    .with_description(metric.brief)
                    $(.$boundaries(metric.bounds.to_vec()))?
                    .build()
            }

            #[cfg(test)]
            fn record_one(&self) {
                self.$record(1_u8.into(), &[]);
            }
        }
    )*};
}

meter_instruments! {
    Counter<u64>: u64_counter, add;
    Counter<f64>: f64_counter, add;
    UpDownCounter<i64>: i64_up_down_counter, add;
    UpDownCounter<f64>: f64_up_down_counter, add;
    Gauge<i64>: i64_gauge, record;
    Gauge<f64>: f64_gauge, record;
    Histogram<u64>: u64_histogram.with_boundaries, record;
    Histogram<f64>: f64_histogram.with_boundaries, record;
}

/// Defines one function a metric, which builds its instrument.
macro_rules! instruments {
    ($($function:ident($metric:ident) -> $kind:ident<$number:ty>;)*) => {
        $(
            #[doc = concat!("Builds the instrument of [`metric::", stringify!($metric), "`].")]
            pub fn $function(meter: &Meter) -> $kind<$number> {
                $crate::instrument::MeterInstrument::new(meter, &metric::$metric)
            }
        )*

        /// Records one value with every instrument.
        #[cfg(test)]
        pub(crate) fn record_one_of_each(meter: &Meter) {
            $($crate::instrument::MeterInstrument::record_one(&$function(meter));)*
        }
    };
}

pub(crate) use instruments;

#[cfg(test)]
mod tests;
