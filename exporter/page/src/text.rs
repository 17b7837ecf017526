//! The history as text for a terminal: for each run its curve, last values, steps and verdicts.

use std::fmt::Write;

use pulsetrain_pipeline::printable;
use pulsetrain_run::sparkline;
use pulsetrain_semconv::Metric;

use super::{
    PageStore,
    history::History,
    layout,
    metrics::{Catalogue, MetricKind},
    run::RunHistory,
    series::Series,
    steps::Step,
};

/// The width of a sparkline.
const COLUMNS: usize = 60;

/// The number of slowest steps listed.
const SLOWEST: usize = 3;

/// The number of newest verdicts listed.
const VERDICTS: usize = 8;

/// The style of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// Whether to use colors, which only a terminal supports.
    pub has_color: bool,
}

impl TextStyle {
    /// Returns the text in a color of the terminal, by its SGR number (ECMA-48).
    fn painted(self, text: &str, color: &str) -> String {
        if self.has_color {
            format!("\x1b[{color}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(self, text: &str) -> String {
        self.painted(text, "1")
    }

    fn faint(self, text: &str) -> String {
        self.painted(text, "2")
    }

    fn alarm(self, text: &str) -> String {
        self.painted(text, "31;1")
    }
}

impl PageStore {
    /// Returns all runs as text.
    pub fn text(&self, style: TextStyle) -> String {
        let history = self.history();
        let mut out = String::new();
        let mut runs: Vec<&RunHistory> = history.runs.values().collect();
        runs.sort_by_key(|run| run.first_nanos);
        for (place, run) in runs.iter().enumerate() {
            if place > 0 {
                out.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write_run(&mut out, &history, run, style);
        }
        if runs.is_empty() {
            let _ = writeln!(out, "no run; {} GPUs", history.gpus.len());
        }
        out
    }
}

fn write_run(out: &mut String, history: &History, run: &RunHistory, style: TextStyle) -> std::fmt::Result {
    let about = &run.about;
    let name = [&about.name, &about.service, &run.id];
    let name = name
        .into_iter()
        .find(|name| !name.is_empty())
        .map_or("", |name| name);
    let ranks = run.members.keys().filter(|rank| rank.is_some()).count();
    let mut facts = vec![run.id.to_string()];
    facts.extend((!about.framework.is_empty()).then(|| about.framework.to_string()));
    facts.extend((ranks > 1).then(|| format!("{ranks} ranks")));
    facts.extend((about.attempt > 0).then(|| format!("attempt {}", about.attempt)));
    writeln!(
        out,
        "{}  {}",
        style.bold(&printable(name)),
        style.faint(&printable(&facts.join(", ")))
    )?;
    write_curve(out, run, &history.catalogue, style)?;
    let values: Vec<String> = layout::tile_metrics()
        .filter_map(|(title, metrics)| Some(format!("{title} {}", tile(run, &history.catalogue, metrics)?)))
        .collect();
    for line in values.chunks(4) {
        writeln!(out, "  {}", line.join("   "))?;
    }
    write_steps(out, run)?;
    write_verdicts(out, run, style)
}

/// Writes the curve of the loss, or of an alternative.
fn write_curve(
    out: &mut String,
    run: &RunHistory,
    catalogue: &Catalogue,
    style: TextStyle,
) -> std::fmt::Result {
    let Some(curve) = run.first_curve(|metric| catalogue.definition(metric).is_headline) else {
        return Ok(());
    };
    let values: Vec<f64> = curve
        .points()
        .1
        .map(|point| {
            if point.has_non_finite {
                f64::NAN
            } else {
                f64::from(point.last)
            }
        })
        .collect();
    let finite = values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let line = sparkline(&values, COLUMNS);
    let bounds = if low.is_finite() {
        format!("{} to {}", number(high), number(low))
    } else {
        "no finite value".to_owned()
    };
    writeln!(out, "  {line}  {}", style.faint(&bounds))
}

/// Returns the last value of the first metric that has one.
fn tile(run: &RunHistory, catalogue: &Catalogue, metrics: &[&Metric]) -> Option<String> {
    let (definition, series) = metrics.iter().find_map(|metric| {
        let metric = catalogue.find(metric.name)?;
        let curve = run.first_curve(|other| other == metric)?;
        Some((catalogue.definition(metric), curve.series))
    })?;
    let value = match definition.kind {
        MetricKind::Rate => f64::from(last(series)?),
        _ => series.latest,
    };
    let unit = match definition.kind {
        MetricKind::Rate => format!("{}/s", definition.unit),
        _ => definition.unit.to_string(),
    };
    Some(with_unit(value, &unit))
}

fn last(series: &Series) -> Option<f32> {
    series.points().1.last().map(|point| point.last)
}

fn write_steps(out: &mut String, run: &RunHistory) -> std::fmt::Result {
    let longest = |step: &Step| {
        let durations = step.ranks.iter().map(|rank| (rank.duration, rank.rank));
        durations
            .filter(|(duration, _)| duration.is_finite())
            .max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let mut steps: Vec<(f32, i64, i64)> = run
        .steps
        .iter()
        .filter_map(|step| longest(step).map(|(duration, rank)| (duration, step.number, rank)))
        .collect();
    if steps.is_empty() {
        return Ok(());
    }
    steps.sort_by(|one, other| one.0.total_cmp(&other.0));
    let quantile = |share: f64| {
        seconds(f64::from(
            steps[((steps.len() - 1) as f64 * share).round() as usize].0,
        ))
    };
    let slowest: Vec<String> = steps
        .iter()
        .rev()
        .take(SLOWEST)
        .map(|(duration, number, rank)| {
            let of_rank = if run.members.len() > 2 {
                format!(" on rank {rank}")
            } else {
                String::new()
            };
            format!("{} at step {number}{of_rank}", seconds(f64::from(*duration)))
        })
        .collect();
    writeln!(
        out,
        "  step time p50 {}, p95 {} (last {} steps); slowest {}",
        quantile(0.5),
        quantile(0.95),
        steps.len(),
        slowest.join(", ")
    )
}

fn write_verdicts(out: &mut String, run: &RunHistory, style: TextStyle) -> std::fmt::Result {
    let verdicts: Vec<_> = run
        .events
        .iter()
        .filter(|event| event.verdict.is_some())
        .collect();
    for event in &verdicts[verdicts.len().saturating_sub(VERDICTS)..] {
        let Some(verdict) = &event.verdict else { continue };
        let state = if verdict.is_open {
            style.alarm(&verdict.kind)
        } else {
            format!("{} (resolved)", verdict.kind)
        };
        let at = event
            .step
            .map_or(String::new(), |step| format!(" at step {step}"));
        writeln!(
            out,
            "  {state}{at} {}: {}",
            printable(&verdict.subject),
            printable(&event.text)
        )?;
    }
    Ok(())
}

/// Formats a value with its unit.
fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "1" => format!("{:.1} %", value * 100.0),
        "s" => seconds(value),
        _ => {
            let name = unit.trim_matches(['{', '}']).replace('}', "");
            let is_counted = name.contains("token") || name.contains("sample");
            if is_counted && value.abs() >= 1e4 {
                format!("{}k {name}", number(value / 1e3))
            } else if is_counted || !unit.starts_with('{') {
                format!("{} {name}", number(value))
            } else {
                number(value)
            }
        }
    }
}

fn seconds(value: f64) -> String {
    if value == 0.0 {
        "0 s".to_owned()
    } else if value < 1.0 {
        format!("{} ms", number(value * 1e3))
    } else if value < 120.0 {
        format!("{} s", number(value))
    } else {
        format!(
            "{:.0} h {:02.0} min",
            (value / 3600.0).floor(),
            (value % 3600.0 / 60.0).floor()
        )
    }
}

/// Formats a number with four significant digits.
fn number(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return value.to_string();
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    match digits {
        ..=0 => format!("{value:.0}"),
        1..=8 => {
            let text = format!("{value:.*}", digits as usize);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_with_human_readable_units() {
        assert_eq!(with_unit(0.4123, "1"), "41.2 %");
        assert_eq!(with_unit(0.0153, "s"), "15.3 ms");
        assert_eq!(with_unit(7_500.0, "s"), "2 h 05 min");
        assert_eq!(with_unit(130_000.0, "{token}/s"), "130k token/s");
        assert_eq!(with_unit(2.134_84, "{loss}"), "2.135");
        assert_eq!(with_unit(f64::NAN, "{loss}"), "NaN");
        assert_eq!(
            (number(0.000_02), number(1234.6)),
            ("0.00002".to_owned(), "1235".to_owned())
        );
    }
}
