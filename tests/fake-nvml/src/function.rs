//! The functions of time that define a scenario's values. Each is declared, so that a test can compute it independently.
//!
//! Time is in seconds since the start of the scenario. Every shape has an exact integral, so a counter is the integral of its
//! rate and not a sum of samples: energy is the integral of power, independent of the times of the reads.

use std::f64::consts::TAU;

use serde::Deserialize;

/// One value as a function of time.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum Function {
    /// The same value at all times.
    Constant(f64),
    /// A value that varies with time.
    Shape(Shape),
}

/// A function of time.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Shape {
    /// A linear ramp over a number of seconds; constant after it.
    Ramp { from: f64, to: f64, over: f64 },
    /// `mean + amplitude * sin(2 pi t / period)`.
    Sine { mean: f64, amplitude: f64, period: f64 },
    /// `[[from second, value], ...]`, in order; the first value also holds before its second.
    Steps(Vec<(f64, f64)>),
    /// `start` plus the integral of a rate.
    Counter(Box<Counter>),
}

/// A counter that increases at a rate, with optional wraps, update intervals and resets.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counter {
    #[serde(default)]
    start: f64,
    /// Units per second.
    rate: Function,
    /// The value at which it wraps to zero: `4294967296` for a counter of 32 bits.
    wraps_at: Option<f64>,
    /// Seconds between two updates of the counter; it is constant in between.
    updates_every: Option<f64>,
    /// The seconds at which it resets to zero, as after a reload of the driver.
    #[serde(default)]
    resets_at: Vec<f64>,
}

impl Function {
    /// Returns the value at a second.
    pub(crate) fn at(&self, second: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Shape(shape) => shape.at(second),
        }
    }

    /// Returns the integral from zero to a second.
    pub(crate) fn integral(&self, second: f64) -> f64 {
        match self {
            Self::Constant(value) => value * second,
            Self::Shape(shape) => shape.integral(second),
        }
    }

    /// Returns the mean between two seconds; the value if they are equal.
    pub(crate) fn mean(&self, from: f64, until: f64) -> f64 {
        if until <= from {
            return self.at(until);
        }
        (self.integral(until) - self.integral(from)) / (until - from)
    }
}

impl Shape {
    fn at(&self, second: f64) -> f64 {
        match self {
            Self::Ramp { from, to, over } => from + (to - from) * (second / over).clamp(0.0, 1.0),
            Self::Sine {
                mean,
                amplitude,
                period,
            } => mean + amplitude * (TAU * second / period).sin(),
            Self::Steps(steps) => step_at(steps, second),
            Self::Counter(counter) => counter.at(second),
        }
    }

    fn integral(&self, second: f64) -> f64 {
        match self {
            Self::Ramp { from, to, over } => {
                let rising = second.clamp(0.0, *over);
                from * rising + (to - from) * rising * rising / (2.0 * over) + to * (second - rising)
            }
            Self::Sine {
                mean,
                amplitude,
                period,
            } => mean * second + amplitude * period / TAU * (1.0 - (TAU * second / period).cos()),
            Self::Steps(steps) => step_integral(steps, second),
            // The mean of a counter is the mean of its rate, so its integral is that of the rate.
            Self::Counter(counter) => counter.rate.integral(second),
        }
    }
}

impl Counter {
    fn at(&self, second: f64) -> f64 {
        // A second that differs from a multiple of the period only by a rounding error counts as the multiple.
        let second = match self.updates_every {
            Some(period) => (second / period + 1e-6).floor() * period,
            None => second,
        };
        let reset = self.resets_at.iter().copied().filter(|reset| *reset <= second);
        let grown = match reset.reduce(f64::max) {
            Some(reset) => self.rate.integral(second) - self.rate.integral(reset),
            None => self.start + self.rate.integral(second),
        };
        self.wraps_at.map_or(grown, |limit| grown.rem_euclid(limit))
    }
}

fn step_at(steps: &[(f64, f64)], second: f64) -> f64 {
    let first = steps.first().map_or(0.0, |(_, value)| *value);
    let begun = steps.iter().take_while(|(from, _)| *from <= second);
    begun.last().map_or(first, |(_, value)| *value)
}

fn step_integral(steps: &[(f64, f64)], second: f64) -> f64 {
    let mut area = 0.0;
    let mut since = 0.0;
    for (from, _) in steps.iter().filter(|(from, _)| *from > 0.0 && *from < second) {
        area += step_at(steps, since) * (from - since);
        since = *from;
    }
    area + step_at(steps, since) * (second - since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(yaml: &str) -> Function {
        serde_saphyr::from_str(yaml).expect("a function")
    }

    #[test]
    fn a_shape_has_its_declared_values() {
        assert_eq!(function("300").at(7.0), 300.0);
        let ramp = function("{ramp: {from: 100, to: 700, over: 10}}");
        assert_eq!(
            [0.0, 5.0, 10.0, 99.0].map(|t| ramp.at(t)),
            [100.0, 400.0, 700.0, 700.0]
        );
        let steps = function("{steps: [[0, 1], [10, 2], [20, 3]]}");
        assert_eq!([0.0, 9.9, 10.0, 25.0].map(|t| steps.at(t)), [1.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn integral_matches_a_fine_numeric_sum() {
        for yaml in [
            "42",
            "{ramp: {from: 100, to: 700, over: 10}}",
            "{sine: {mean: 400, amplitude: 300, period: 7}}",
            "{steps: [[0, 1], [3, 20], [11.5, 3]]}",
        ] {
            let function = function(yaml);
            let summed: f64 = (0..130_000)
                .map(|i| function.at((f64::from(i) + 0.5) / 1e4) / 1e4)
                .sum();
            let exact = function.integral(13.0);
            assert!(
                (summed - exact).abs() < 1e-3 * exact,
                "{yaml}: {summed} against {exact}"
            );
        }
    }

    #[test]
    fn counter_is_constant_between_its_updates() {
        let energy = function("{counter: {start: 5, rate: 100, updates_every: 0.1}}");
        assert_eq!(
            [0.0, 0.09, 0.3, 0.35].map(|t| energy.at(t).round()),
            [5.0, 5.0, 35.0, 35.0]
        );
    }

    #[test]
    fn counter_wraps_and_resets_as_configured() {
        let wrapping = function("{counter: {start: 4294967290, rate: 10, wraps_at: 4294967296}}");
        assert_eq!(
            [0.0, 1.0, 2.0].map(|t| wrapping.at(t)),
            [4_294_967_290.0, 4.0, 14.0]
        );
        let resetting = function("{counter: {start: 50, rate: 10, resets_at: [5]}}");
        assert_eq!([4.0, 5.0, 6.0].map(|t| resetting.at(t)), [90.0, 0.0, 10.0]);
    }
}
