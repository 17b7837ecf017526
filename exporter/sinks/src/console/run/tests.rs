//! Formatted lines, step by step.

use pulsetrain_run::{SeriesKey, SeriesPoint};

use super::*;

/// Returns a step with values by column format.
fn step(secs: u64, values: &[(Show, f64)]) -> Step {
    let mut step = Step {
        unix_nanos: UnixNanos(secs * 1_000_000_000),
        ..Step::default()
    };
    for (show, value) in values {
        let column = column_with_format(*show).unwrap();
        match show {
            Show::Sum | Show::Millis => {
                let key = SeriesKey::new(COLUMNS[column].metric.name.as_bytes());
                step.points.push((column, key, total(step.unix_nanos, *value)));
            }
            _ => step.values[column] = Some(*value),
        }
    }
    step
}

/// Returns a cumulative point.
fn total(time: UnixNanos, sum: f64) -> SeriesPoint {
    SeriesPoint {
        start: UnixNanos::UNKNOWN,
        time,
        is_delta: false,
        count: None,
        sum,
    }
}

#[test]
fn console_line_has_the_surogate_format() {
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
fn missing_columns_are_computed_from_reported_ones() {
    let mut run = RunLine::default();
    let reported = |secs, number, tokens, duration| {
        let mut step = step(
            secs,
            &[
                (Show::Step, number),
                (Show::Epoch, 0.25),
                (Show::Sum, tokens),
                (Show::Expected, 200_000.0),
                (Show::Millis, duration),
            ],
        );
        let durations = column_with_format(Show::Millis);
        let durations = step.points.iter_mut().find(|point| Some(point.0) == durations);
        durations.unwrap().2.count = Some(number as u64 + 1);
        step
    };
    assert_eq!(
        run.advance(&reported(0, 0.0, 10_000.0, 0.1)).unwrap(),
        ":: step       0 [epoch 0.25] | 100.0k tps |   100 ms | sol 50.0"
    );
    assert_eq!(
        run.advance(&reported(1, 1.0, 30_000.0, 0.3)).unwrap(),
        ":: step       1 [epoch 0.25] | 100.0k tps |   200 ms | sol 50.0"
    );
}

#[test]
fn line_from_the_middle_of_a_run_shows_its_pace_from_the_second_step() {
    let mut run = RunLine::default();
    let reported = |number, tokens, duration| {
        step(
            1,
            &[
                (Show::Step, number),
                (Show::Sum, tokens),
                (Show::Millis, duration),
            ],
        )
    };
    assert_eq!(run.advance(&reported(7.0, 7e4, 0.7)).unwrap(), ":: step       7");
    assert_eq!(
        run.advance(&reported(8.0, 8e4, 0.8)).unwrap(),
        ":: step       8 | 100.0k tps |   100 ms"
    );
}

#[test]
fn values_between_steps_are_shown_with_the_next_step() {
    let mut run = RunLine::default();
    assert_eq!(run.advance(&step(0, &[(Show::Percent("mfu"), 0.41)])), None);
    assert_eq!(
        run.advance(&step(1, &[(Show::Step, 1.0)])).unwrap(),
        ":: step       1 | mfu 41.0"
    );
}

#[test]
fn norm_far_above_its_average_is_marked_as_a_spike() {
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
fn nan_loss_is_shown_as_nan() {
    let mut run = RunLine::default();
    let line = run.advance(&step(1, &[(Show::Step, 1.0), (Show::Trend("loss"), f64::NAN)]));
    assert_eq!(line.unwrap(), ":: step       1   loss    NaN");
}

#[test]
fn run_name_does_not_control_the_terminal() {
    let named = Step {
        name: "a\x1b[2Jb".to_owned(),
        ..step(1, &[(Show::Step, 1.0)])
    };
    let line = RunLine::new(&named).advance(&named).unwrap();
    assert_eq!(line, ":: a [2Jb step       1");
}

#[test]
fn console_line_ends_with_a_sparkline_of_recent_losses() {
    let mut run = RunLine::default();
    let lines: Vec<String> = (1..=30)
        .filter_map(|number| {
            let loss = if number == 29 {
                f64::NAN
            } else {
                40.0 - number as f64
            };
            run.advance(&step(
                number,
                &[(Show::Step, number as f64), (Show::Trend("loss"), loss)],
            ))
        })
        .collect();
    assert!(!lines[6].contains('▁'), "{}", lines[6]);
    assert!(lines[7].ends_with("█▇▆▅▄▃▂▁"), "{}", lines[7]);
    assert!(lines[29].ends_with("×▁"), "{}", lines[29]);
}
