//! The values that one run has reported, and its line.

use std::{collections::VecDeque, fmt::Write};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::printable;
use pulsetrain_run::{Increase, IncreaseKind, SeriesTrackers, sparkline};

use super::{
    columns::{COLUMNS, SOL, Show, column_with_format},
    steps::Step,
};

/// The maximum length of the name of a run in characters.
const NAME_CHARACTERS: usize = 40;

/// The line of a run, with the earlier values that it needs.
#[derive(Debug, Default)]
pub(super) struct RunLine {
    name: String,
    now: [Option<f64>; COLUMNS.len()],
    before: [Option<f64>; COLUMNS.len()],
    /// The time of each value.
    times: [UnixNanos; COLUMNS.len()],
    series: Option<SeriesTrackers>,
    /// The last increase of each column of a sum or a distribution.
    increases: [Option<Increase>; COLUMNS.len()],
    /// Whether the last step was the first of its cumulative series, so that their values are increases.
    is_first: bool,
    norms: Average,
    first: Option<(UnixNanos, f64)>,
    losses: VecDeque<f64>,
    line: String,
}

/// The average that spikes are measured against: a cumulative mean at first, later an exponential moving
/// average.
#[derive(Debug, Default)]
struct Average {
    count: u32,
    mean: f64,
}

/// The number of values after which the cumulative mean becomes an exponential moving average.
const CUMULATIVE: u32 = 100;
/// The weight of the newest value in the exponential moving average.
const NEWEST: f64 = 0.1;
/// The number of losses in the sparkline.
const LOSSES: usize = 24;
const MIN_LOSSES: usize = 8;

/// The maximum number of series of sums and distributions.
const MAX_SERIES: usize = 256;

/// A value is a spike at this multiple of the average, itself included (Surogate's rule).
const SPIKE: f64 = 5.0;
/// The number of values before spikes are detected.
const SPIKE_AFTER: u32 = 10;

impl RunLine {
    /// Returns the line of a run that reports its first step.
    pub(super) fn new(step: &Step) -> Self {
        Self {
            name: step.name.clone(),
            ..Self::default()
        }
    }

    /// Adds the values of a step. Returns the line if it has changed to a new step.
    pub(super) fn advance(&mut self, step: &Step) -> Option<String> {
        let values = self.observe(step);
        for (column, value) in values.into_iter().enumerate() {
            if let Some(value) = value {
                self.before[column] = self.now[column].replace(value);
                self.times[column] = step.unix_nanos;
            }
        }
        if let Some(norm) = column_with_format(Show::Spike("norm")).and_then(|column| values[column]) {
            self.norms.add(norm);
        }
        if let Some(loss) = column_with_format(Show::Trend("loss")).and_then(|column| values[column]) {
            if self.losses.len() == LOSSES {
                self.losses.pop_front();
            }
            self.losses.push_back(loss);
        }
        let is_step = column_with_format(Show::Step).is_some_and(|column| values[column].is_some());
        is_step.then(|| self.draw(step.unix_nanos))
    }

    /// Returns the values of a step. That of a distribution is the mean of its new observations, that of a sum its increase.
    fn observe(&mut self, step: &Step) -> [Option<f64>; COLUMNS.len()] {
        let series = self.series.get_or_insert_with(|| SeriesTrackers::new(MAX_SERIES));
        let mut increases = [None::<Increase>; COLUMNS.len()];
        self.is_first = false;
        for (column, key, point) in &step.points {
            let increase = series.observe(*key, point);
            // A distribution without a new observation has no increase.
            let Some(increase) = increase.filter(|new| point.count.is_none() || new.count > 0) else {
                continue;
            };
            self.is_first |= increase.kind == IncreaseKind::First && increase.count == 1;
            match &mut increases[*column] {
                Some(total) => {
                    total.count += increase.count;
                    total.sum += increase.sum;
                }
                first => *first = Some(increase),
            }
        }
        let mut values = step.values;
        for (column, increase) in increases.into_iter().enumerate() {
            let Some(increase) = increase else { continue };
            self.increases[column] = Some(increase);
            let value = if increase.count > 0 {
                increase.mean()
            } else {
                Some(increase.sum)
            };
            values[column] = value.filter(|_| self.is_known(&increase));
        }
        values
    }

    /// Returns whether an increase belongs to its step, and has no unknown past.
    fn is_known(&self, increase: &Increase) -> bool {
        (increase.is_recent() || self.is_first) && increase.sum >= 0.0
    }

    fn draw(&mut self, unix_nanos: UnixNanos) -> String {
        self.line.clear();
        self.line.push_str("::");
        if !self.name.is_empty() {
            let _ = write!(self.line, " {}", truncated(&self.name));
        }
        for column in 0..COLUMNS.len() {
            self.draw_column(column, unix_nanos);
        }
        if self.losses.len() >= MIN_LOSSES {
            let _ = write!(
                self.line,
                " | {}",
                sparkline(self.losses.make_contiguous(), LOSSES)
            );
        }
        self.line.clone()
    }

    /// Writing to a string cannot fail, so the result is ignored.
    fn draw_column(&mut self, column: usize, unix_nanos: UnixNanos) {
        let Some(value) = self.value(column, unix_nanos) else {
            return;
        };
        let line = &mut self.line;
        let _ = match COLUMNS[column].show {
            Show::Step => write!(line, " step {value:>7}"),
            Show::Progress => write!(line, " [{:5.1}%]", value * 100.0),
            Show::Epoch => write!(line, " [epoch {value:.2}]"),
            Show::Trend(label) => write!(
                line,
                " {} {label} {value:>6.4}",
                trend(self.before[column], value)
            ),
            Show::Spike(label) => write!(line, " | {label} {}{value:>6.4}", self.norms.mark(value)),
            Show::Exponent(label) => write!(line, " | {label} {value:.2e}"),
            Show::PerSecond(label) => write!(line, " | {:5.1}k {label}", value / 1e3),
            Show::Millis => write!(line, " | {:5.0} ms", value * 1e3),
            Show::Sum | Show::Expected => Ok(()),
            Show::Percent(label) => write!(line, " | {label} {:4.1}", value * 100.0),
            Show::Eta => write!(
                line,
                " | eta {:02.0}h{:02.0}m",
                (value / 3600.0).floor(),
                (value % 3600.0 / 60.0).floor()
            ),
        };
    }

    /// Returns the value of a column: reported, or computed from other columns.
    fn value(&mut self, column: usize, unix_nanos: UnixNanos) -> Option<f64> {
        let last = self.now[column];
        // A derived value may arrive after the line of its step, so the value of the step before is the last
        // resort.
        let present = last.filter(|_| self.times[column] == unix_nanos);
        match COLUMNS[column].show {
            Show::Epoch if self.last_of(Show::Progress).is_some() => None,
            Show::PerSecond(_) => present.or_else(|| self.rate()).or(last),
            SOL => present.or_else(|| self.speed_of_light()).or(last),
            Show::Eta => present.or_else(|| self.eta(unix_nanos)).or(last),
            _ => last,
        }
    }

    /// Returns the throughput of the step divided by the peak throughput of the hardware.
    fn speed_of_light(&self) -> Option<f64> {
        Some(self.rate()? / self.last_of(Show::Expected)?)
    }

    /// Returns the last value of the column with this format.
    fn last_of(&self, show: Show) -> Option<f64> {
        self.now[column_with_format(show)?]
    }

    /// Returns the throughput of the step per second.
    fn rate(&self) -> Option<f64> {
        let rate = self.increase_of(Show::Sum)? / self.increase_of(Show::Millis)?;
        rate.is_finite().then_some(rate)
    }

    /// Returns the last increase of a sum.
    fn increase_of(&self, show: Show) -> Option<f64> {
        let increase = self.increases[column_with_format(show)?]?;
        self.is_known(&increase).then_some(increase.sum)
    }

    /// Returns the remaining seconds, extrapolated from the first observed progress.
    fn eta(&mut self, unix_nanos: UnixNanos) -> Option<f64> {
        let progress = self.last_of(Show::Progress)?;
        let (since, from) = *self.first.get_or_insert((unix_nanos, progress));
        let secs = unix_nanos.nanos_since(since) as f64 / 1e9;
        let left = secs / (progress - from) * (1.0 - progress);
        (progress > from && left.is_finite() && left >= 0.0).then_some(left)
    }
}

impl Average {
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.count = self.count.saturating_add(1);
        let weight = if self.count <= CUMULATIVE {
            1.0 / f64::from(self.count)
        } else {
            NEWEST
        };
        self.mean += weight * (value - self.mean);
    }

    fn mark(&self, value: f64) -> char {
        let is_spike = !value.is_finite() || (self.count >= SPIKE_AFTER && value > SPIKE * self.mean);
        if is_spike { '!' } else { ' ' }
    }
}

fn trend(before: Option<f64>, now: f64) -> char {
    match before.and_then(|before| now.partial_cmp(&before)) {
        Some(std::cmp::Ordering::Less) => '\\',
        Some(std::cmp::Ordering::Greater) => '/',
        _ => ' ',
    }
}

/// Returns the beginning of a name, printable.
fn truncated(name: &str) -> String {
    printable(name).chars().take(NAME_CHARACTERS).collect()
}

#[cfg(test)]
mod tests;
