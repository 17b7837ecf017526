//! Adds log records: verdicts, errors of GPUs, warnings.

use pulsetrain_otlp::{UnixNanos, WireError, json::value_text, view::LogRecord, walk};
use pulsetrain_run::integer;
use pulsetrain_semconv::{Attribute, attribute};

use super::{
    super::{
        PageConfig,
        events::{RunEvent, Verdict, bounded},
        history::History,
        layout,
        run::RunHistory,
    },
    origin::{Origin, find},
};

/// The lowest severity that is listed (OpenTelemetry logs data model, "SeverityNumber": WARN).
const WARN: i32 = 13;

/// Adds a batch of log records.
pub(crate) fn logs(history: &mut History, bytes: &[u8], now_millis: i64) -> Result<(), WireError> {
    for resource in walk::records(bytes) {
        let resource = resource?;
        let origin = Origin::from_attributes(resource.attributes())?;
        for record in resource.items() {
            add(history, &origin, &record?, now_millis)?;
        }
    }
    Ok(())
}

fn add(
    history: &mut History,
    origin: &Origin,
    record: &LogRecord<'_>,
    now_millis: i64,
) -> Result<(), WireError> {
    let name = record.event_name.to_str_lossy();
    let is_verdict = name == layout::VERDICT.name;
    let is_listed = is_verdict || layout::is_listed(&name) || record.severity_number >= WARN;
    if !is_listed || layout::is_private(&name) {
        return Ok(());
    }
    let string = |wanted: &Attribute| -> Result<Box<str>, WireError> {
        let value = find(&record.attributes, wanted)?;
        Ok(value.map(|value| bounded(&value_text(value))).unwrap_or_default())
    };
    let gpu = Some(string(&attribute::GPU_ID)?).filter(|gpu| !gpu.is_empty());
    let code = string(&attribute::GPU_XID_CODE)?;
    let body = record
        .body
        .map(|body| bounded(&value_text(body)))
        .unwrap_or_default();
    let verdict = if is_verdict {
        Some(Verdict {
            kind: string(&attribute::TRAIN_VERDICT_KIND)?,
            subject: string(&attribute::TRAIN_VERDICT_SUBJECT)?,
            is_open: *string(&attribute::TRAIN_VERDICT_STATE)? != *"resolved",
        })
    } else {
        None
    };
    let event = RunEvent {
        name: bounded(&name),
        time_nanos: if record.time_unix_nano > 0 {
            UnixNanos(record.time_unix_nano)
        } else {
            UnixNanos(record.observed_time_unix_nano)
        },
        end_nanos: None,
        step: find(&record.attributes, &attribute::TRAIN_STEP)?.and_then(integer),
        rank: find(&record.attributes, &attribute::TRAIN_RANK)?
            .and_then(integer)
            .or(origin.rank),
        text: if body.is_empty() && !code.is_empty() {
            format!("XID {code}").into()
        } else {
            body
        },
        gpu: gpu.clone(),
        severity: record.severity_number,
        verdict,
    };
    let config = history.config.clone();
    let mut named = string(&attribute::TRAIN_RUN_ID)?;
    if let Some(gpu) = gpu.and_then(|gpu| history.gpus.get_mut(&(origin.host.clone(), gpu))) {
        gpu.record(event.clone());
        if named.is_empty() {
            named = gpu.run.clone().unwrap_or_default();
        }
    }
    let run = if history.runs.contains_key(&named) {
        Ok(history.runs.get_mut(&named))
    } else {
        origin.run(history, false, now_millis)
    };
    if let Err(rejection) = run {
        history.counts.rejected.count(rejection);
    } else if let Ok(Some(run)) = run {
        push(run, event, &config);
    } else if event.gpu.is_some() && named.is_empty() && !origin.host.is_empty() {
        // The run of the GPU is unknown, so the event is added to every run on its host.
        for run in history.runs.values_mut().filter(|run| run.is_on(&origin.host)) {
            push(run, event.clone(), &config);
        }
    }
    Ok(())
}

fn push(run: &mut RunHistory, event: RunEvent, config: &PageConfig) {
    run.revision += 1;
    let step = event.step.or_else(|| run.clock.at(event.time_nanos));
    run.events
        .push(RunEvent { step, ..event }, run.max_events(config));
}
