//! What one run has said so far, and its line.

use std::fmt::Write;

use super::{
    columns::{COLUMNS, Show, shown_as},
    steps::Step,
};

/// A run's line and what it needs to know of the past.
#[derive(Debug, Default)]
pub(super) struct RunLine {
    name: String,
    now: [Option<f64>; COLUMNS.len()],
    before: [Option<f64>; COLUMNS.len()],
    norms: Average,
    first: Option<(u64, f64)>,
    line: String,
}

/// The average that a spike is measured by: of all values at first, later with the weight on the newest.
#[derive(Debug, Default)]
struct Average {
    count: u32,
    mean: f64,
}

/// Until this many values the average is that of all.
const CUMULATIVE: u32 = 100;
/// The weight of the newest value after that.
const NEWEST: f64 = 0.1;
/// A value is a spike when it is so many times the average, itself included, of so many values (Surogate's rule).
const SPIKE: f64 = 5.0;
const SPIKE_AFTER: u32 = 10;

impl RunLine {
    /// A run that says its first step.
    pub(super) fn of(step: &Step) -> Self {
        Self {
            name: step.name.clone(),
            ..Self::default()
        }
    }

    /// Takes in what the run said; gives its line where that was a step.
    pub(super) fn advance(&mut self, step: &Step) -> Option<String> {
        for column in 0..COLUMNS.len() {
            if let Some(value) = step.values[column] {
                self.before[column] = self.now[column].replace(value);
            }
        }
        if let Some(norm) = shown_as(Show::Spike("norm")).and_then(|column| step.values[column]) {
            self.norms.add(norm);
        }
        let is_step = shown_as(Show::Step).is_some_and(|column| step.values[column].is_some());
        is_step.then(|| self.draw(step.unix_nanos))
    }

    fn draw(&mut self, unix_nanos: u64) -> String {
        self.line.clear();
        self.line.push_str("::");
        if !self.name.is_empty() {
            let _ = write!(self.line, " {}", printable(&self.name));
        }
        for column in 0..COLUMNS.len() {
            self.draw_column(column, unix_nanos);
        }
        self.line.clone()
    }

    /// Writing into a string cannot fail, so its result says nothing.
    fn draw_column(&mut self, column: usize, unix_nanos: u64) {
        let show = COLUMNS[column].show;
        let value = match show {
            Show::Eta => self.now[column].or_else(|| self.eta(unix_nanos)),
            Show::Millis => self.growth(column),
            _ => self.now[column],
        };
        let Some(value) = value else { return };
        let line = &mut self.line;
        let _ = match show {
            Show::Step => write!(line, " step {value:>7}"),
            Show::Progress => write!(line, " [{:5.1}%]", value * 100.0),
            Show::Trend(label) => write!(
                line,
                " {} {label} {value:>6.4}",
                trend(self.before[column], value)
            ),
            Show::Spike(label) => write!(line, " | {label} {}{value:>6.4}", self.norms.mark(value)),
            Show::Exponent(label) => write!(line, " | {label} {value:.2e}"),
            Show::PerSecond(label) => write!(line, " | {:5.1}k {label}", value / 1e3),
            Show::Millis => write!(line, " | {:5.0} ms", value * 1e3),
            Show::Percent(label) => write!(line, " | {label} {:4.1}", value * 100.0),
            Show::Eta => write!(
                line,
                " | eta {:02.0}h{:02.0}m",
                (value / 3600.0).floor(),
                (value % 3600.0 / 60.0).floor()
            ),
        };
    }

    /// What a sum grew by since it was last said.
    fn growth(&self, column: usize) -> Option<f64> {
        Some(self.now[column]? - self.before[column]?).filter(|growth| *growth >= 0.0)
    }

    /// The seconds that are left at the pace since the first progress that was seen.
    fn eta(&mut self, unix_nanos: u64) -> Option<f64> {
        let progress = self.now[shown_as(Show::Progress)?]?;
        let (since, from) = *self.first.get_or_insert((unix_nanos, progress));
        let secs = unix_nanos.saturating_sub(since) as f64 / 1e9;
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

/// A name without what a terminal would obey.
fn printable(name: &str) -> String {
    name.chars()
        .filter(|character| !character.is_control())
        .take(40)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step with values by the way in which they are shown.
    fn step(secs: u64, values: &[(Show, f64)]) -> Step {
        let mut step = Step {
            unix_nanos: secs * 1_000_000_000,
            ..Step::default()
        };
        for (show, value) in values {
            step.values[shown_as(*show).unwrap()] = Some(*value);
        }
        step
    }

    #[test]
    fn the_line_is_that_of_surogate() {
        let mut run = RunLine::default();
        run.advance(&step(
            0,
            &[
                (Show::Step, 21.0),
                (Show::Progress, 0.05),
                (Show::Trend("loss"), 2.5),
                (Show::Millis, 10.0),
            ],
        ));
        let line = run.advance(&step(
            60,
            &[
                (Show::Step, 22.0),
                (Show::Progress, 0.1),
                (Show::Trend("loss"), 2.1348),
                (Show::Spike("norm"), 9.75),
                (Show::Exponent("lr"), 2e-5),
                (Show::PerSecond("tps"), 130_000.0),
                (Show::Millis, 10.126),
                (Show::Percent("sol"), 0.683),
            ],
        ));
        assert_eq!(
            line.unwrap(),
            ":: step      22 [ 10.0%] \\ loss 2.1348 | norm  9.7500 | lr 2.00e-5 | 130.0k tps |   126 ms | sol 68.3 | eta 00h18m"
        );
    }

    #[test]
    fn what_is_said_between_steps_is_shown_with_the_next() {
        let mut run = RunLine::default();
        assert_eq!(run.advance(&step(0, &[(Show::Percent("mfu"), 0.41)])), None);
        assert_eq!(
            run.advance(&step(1, &[(Show::Step, 1.0)])).unwrap(),
            ":: step       1 | mfu 41.0"
        );
    }

    #[test]
    fn a_norm_far_above_its_average_is_marked() {
        let mut run = RunLine::default();
        let mut lines = (1..=11).map(|number| {
            let norm = if number == 11 { 10.0 } else { 1.0 };
            run.advance(&step(
                number,
                &[(Show::Step, number as f64), (Show::Spike("norm"), norm)],
            ))
            .unwrap()
        });
        assert!(lines.by_ref().take(10).all(|line| !line.contains('!')));
        assert_eq!(lines.next().unwrap(), ":: step      11 | norm !10.0000");
    }

    #[test]
    fn a_loss_that_is_no_number_is_shown_as_it_is() {
        let mut run = RunLine::default();
        let line = run.advance(&step(1, &[(Show::Step, 1.0), (Show::Trend("loss"), f64::NAN)]));
        assert_eq!(line.unwrap(), ":: step       1   loss    NaN");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let named = Step {
            name: "a\x1b[2Jb".to_owned(),
            ..step(1, &[(Show::Step, 1.0)])
        };
        let line = RunLine::of(&named).advance(&named).unwrap();
        assert_eq!(line, ":: a[2Jb step       1");
    }
}
