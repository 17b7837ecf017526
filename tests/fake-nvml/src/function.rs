//! The functions of time that a scenario's numbers follow: each is declared, so that a test computes it by itself.
//!
//! Time is in seconds since the scenario began. Every shape has an exact integral, so that a counter is the area under
//! its rate and not a sum of samples: energy is the integral of power whatever the moments at which anybody looks.

use std::f64::consts::TAU;

use serde::Deserialize;

/// One number over time.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum Function {
    /// The same at all times.
    Constant(f64),
    /// Another at other times.
    Shape(Shape),
}

/// How a number moves.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Shape {
    /// From one value to another, evenly, over a number of seconds; then it stays.
    Ramp { from: f64, to: f64, over: f64 },
    /// `mean + amplitude * sin(2 pi t / period)`.
    Sine { mean: f64, amplitude: f64, period: f64 },
    /// `[[from second, value], ...]`, in order; the first value holds before its second as well.
    Steps(Vec<(f64, f64)>),
    /// `start` plus the area under a rate.
    Counter(Box<Counter>),
}

/// A number that grows at a rate, and what spoils it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Counter {
    #[serde(default)]
    start: f64,
    /// Units a second.
    rate: Function,
    /// Where it goes back to zero: `4294967296` for a counter of 32 bits.
    wraps_at: Option<f64>,
    /// Seconds between two updates of the counter: between them it is constant.
    updates_every: Option<f64>,
    /// The seconds at which it starts from zero, as a reloaded driver's does.
    #[serde(default)]
    resets_at: Vec<f64>,
}

impl Function {
    /// The value at a second.
    pub(crate) fn at(&self, second: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Shape(shape) => shape.at(second),
        }
    }

    /// The area under it from zero to a second.
    pub(crate) fn integral(&self, second: f64) -> f64 {
        match self {
            Self::Constant(value) => value * second,
            Self::Shape(shape) => shape.integral(second),
        }
    }

    /// The mean between two seconds; the value where they are the same.
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
            // The area under a counter is nobody's measure; what is asked for a counter's mean is its growth.
            Self::Counter(counter) => counter.rate.integral(second),
        }
    }
}

impl Counter {
    fn at(&self, second: f64) -> f64 {
        // A second that is a multiple of the period but for rounding is one.
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
    fn an_integral_is_the_area_that_a_fine_sum_comes_to() {
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
    fn a_counter_stands_still_between_its_updates() {
        let energy = function("{counter: {start: 5, rate: 100, updates_every: 0.1}}");
        assert_eq!(
            [0.0, 0.09, 0.3, 0.35].map(|t| energy.at(t).round()),
            [5.0, 5.0, 35.0, 35.0]
        );
    }

    #[test]
    fn a_counter_wraps_and_resets_where_it_is_told() {
        let wrapping = function("{counter: {start: 4294967290, rate: 10, wraps_at: 4294967296}}");
        assert_eq!(
            [0.0, 1.0, 2.0].map(|t| wrapping.at(t)),
            [4_294_967_290.0, 4.0, 14.0]
        );
        let resetting = function("{counter: {start: 50, rate: 10, resets_at: [5]}}");
        assert_eq!([4.0, 5.0, 6.0].map(|t| resetting.at(t)), [90.0, 0.0, 10.0]);
    }
}
