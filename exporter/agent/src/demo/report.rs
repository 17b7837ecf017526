//! The output of the demo: the addresses at its start, and the counts at its end.

use pulsetrain_demo::{DemoCounts, DemoProgress, Subject, Truth};
use pulsetrain_pipeline::SinkReport;
use serde_json::{Value, json};

use super::{
    arguments::DemoArguments,
    sent_counter::SentCounts,
    targets::{OTLP_FILE, Targets},
};
use crate::losses;

/// Returns the locations of the outputs, one per line.
pub(super) fn start(arguments: &DemoArguments, step_seconds: f64, targets: &Targets) -> String {
    let mut lines = vec![format!(
        "A simulated {} job on {} ranks, a step every {step_seconds:.3} s, seed {}. Press Ctrl-C to stop.",
        arguments.workload, arguments.ranks, arguments.seed
    )];
    if let Some(address) = targets.page {
        lines.push(format!("  page      http://{address}/"));
        lines.push(format!("  metrics   http://{address}/metrics"));
    }
    if let Some(folder) = &targets.folder {
        let folder = folder.display();
        lines.push(format!("  OTLP      {folder}/{OTLP_FILE}"));
        lines.push(format!(
            "  Perfetto  {folder}/trace-*.pftrace (open it at https://ui.perfetto.dev)"
        ));
    }
    for target in &arguments.to {
        lines.push(format!("  sends to  {target}"));
    }
    lines.join("\n")
}

/// The report about a finished demo.
pub(super) struct Report<'a> {
    pub(super) progress: &'a DemoProgress,
    pub(super) derived: &'a SentCounts,
    pub(super) sinks: &'a [SinkReport],
    pub(super) first_curve_seconds: Option<f64>,
}

impl Report<'_> {
    /// Returns whether every sink received everything.
    pub(super) fn is_complete(&self) -> bool {
        let is_complete = |sink: &SinkReport| sink.counts.lost_items() == 0 && sink.finished.is_ok();
        self.sinks.iter().all(is_complete)
    }

    /// Returns the report as text.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = self.progress.truth.iter().map(truth_text).collect();
        for sink in self.sinks {
            lines.extend(losses::messages(&sink.counts));
            if let Err(error) = &sink.finished {
                lines.push(format!("{}: {error}", sink.counts.name));
            }
        }
        let own = &self.progress.counts;
        let derived = &self.derived.counts;
        lines.push(format!(
            "{} steps: {} points of {} series, {} spans, {} events; derived from them {} points of {} series, {} events",
            own.steps,
            own.points,
            self.progress.series,
            own.spans,
            own.events,
            derived.points,
            self.derived.series.series(),
            derived.events,
        ));
        lines.join("\n")
    }

    /// Returns the report as JSON.
    pub(super) fn to_json(&self) -> Value {
        let sinks = self.sinks.iter().map(|sink| {
            json!({
                "target": sink.counts.name,
                "accepted": sink.counts.accepted,
                "delivered": sink.counts.delivered,
                "lost": sink.counts.lost_items(),
                "messages": losses::messages(&sink.counts),
                "error": sink.finished.as_ref().err().map(ToString::to_string),
            })
        });
        json!({
            "steps": self.progress.counts.steps,
            "sent": counts_json(&self.progress.counts, self.progress.series),
            "derived": counts_json(&self.derived.counts, self.derived.series.series()),
            "first_curve_seconds": self.first_curve_seconds,
            "faults": self.progress.truth.iter().map(truth_json).collect::<Vec<_>>(),
            "targets": sinks.collect::<Vec<_>>(),
        })
    }
}

fn counts_json(counts: &DemoCounts, series: u64) -> Value {
    json!({
        "points": counts.points,
        "series": series,
        "spans": counts.spans,
        "events": counts.events,
        "batches": counts.batches,
        "bytes": counts.bytes,
    })
}

fn truth_json(truth: &Truth) -> Value {
    json!({
        "fault": truth.fault.name,
        "verdict": truth.verdict(),
        "subject": truth.subject.to_string(),
        "first_step": truth.first_step,
        "last_step": truth.last_step,
        "start_unix_nanos": truth.start_unix_nanos.0,
        "end_unix_nanos": truth.end_unix_nanos.map(|end| end.0),
    })
}

fn truth_text(truth: &Truth) -> String {
    let subject = match &truth.subject {
        Subject::Run => String::new(),
        subject => format!(" of {subject}"),
    };
    let steps = match truth.last_step {
        Some(last) if last == truth.first_step => format!("at step {last}"),
        Some(last) => format!("from step {} to {last}", truth.first_step),
        None => format!("from step {} on", truth.first_step),
    };
    format!("{}{subject} {steps}", truth.fault.name)
}
