//! Records the metadata of a run: its owner's labels, its environment and its alerts.

use pulsetrain_mapping::{CoverageRow, coverage_rules, record_option};
use pulsetrain_otlp::{
    UnixNanos,
    wire::{Field, Reader, WireError, WireValue as Wire},
    write::AttributeValue as Out,
};
use pulsetrain_semconv::{attribute, event, metric};

use pulsetrain_record::Recorder;

/// The fields of `RunRecord` that are recorded as options.
const OF_RUN: [(u32, &str); 5] = [
    (6, "wandb.group"),
    (7, "wandb.job_type"),
    (9, "wandb.notes"),
    (10, "wandb.tags"),
    (12, "wandb.sweep_id"),
];
/// The fields of a resumed run: its first step, and whether it was resumed.
const STARTING_STEP: u32 = 14;
const RESUMED: u32 = 18;

/// The fields of `EnvironmentRecord` that are recorded. User names and paths are private and left out.
const OF_ENVIRONMENT: [(u32, &str); 10] = [
    (1, "os"),
    (2, "python"),
    (4, "docker"),
    (6, "program"),
    (12, "host"),
    (16, "cpu_count"),
    (17, "cpu_count_logical"),
    (18, "gpu"),
    (19, "gpu_count"),
    (25, "cuda_version"),
];
const GPU_NVIDIA: u32 = 24;

/// Returns the coverage rows of everything that is not logged under a key.
pub(super) fn coverage() -> [CoverageRow; 11] {
    coverage_rules! {
        "_step" => metric::TRAIN_GLOBAL_STEP.name, "if the trainer logs no step of its own";
        "_timestamp" => "(the time of every point)", "times 1e9";
        "_runtime, _wandb.*" => "(left out: wandb_clock)", "";
        "run.project" => attribute::TRAIN_PROJECT.name, "of the resource";
        "run.display_name" => attribute::TRAIN_RUN_NAME.name, "of the resource";
        "config, run.config, run.group, job_type, notes, tags, sweep_id" =>
            event::RUN_OPTION.name, "one event a key";
        "environment" => event::RUN_ENVIRONMENT.name, "one event, and one `run.gpu_model` per NVIDIA GPU";
        "alert" => event::RUN_MESSAGE.name, "one event";
        "summary" =>
            "(left out: wandb_summary)", "except for keys without a history, which count as logged at the end";
        "output, output_raw" => "(left out: console_output)", "";
        "exit, files, metric, telemetry, header, footer ..." => "(left out: wandb_bookkeeping)", "";
    }
}

/// Records the labels of the run, and whether it was resumed.
pub(super) fn run(
    bytes: &[u8],
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) -> Result<(), WireError> {
    let mut option = |name: &str, value: Out<'_>| record_option(name, value, time_unix_nanos, recorder);
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match value {
            Wire::Bytes(text) if !text.is_empty() => {
                if let Some(name) = named(&OF_RUN, number) {
                    option(name, Out::Text(&String::from_utf8_lossy(text)));
                }
            }
            Wire::Varint(step) if number == STARTING_STEP && step > 0 => {
                option("wandb.starting_step", Out::Int(step as i64));
            }
            Wire::Varint(1) if number == RESUMED => option("wandb.resumed", Out::Bool(true)),
            _ => {}
        }
    }
    Ok(())
}

/// Records the machine and the software, and each GPU of NVIDIA.
pub(super) fn environment(
    bytes: &[u8],
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) -> Result<(), WireError> {
    let (mut texts, mut gpus) = (Vec::new(), Vec::new());
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (value, named(&OF_ENVIRONMENT, number)) {
            (Wire::Bytes(text), Some(name)) => texts.push((name, String::from_utf8_lossy(text))),
            (Wire::Varint(count), Some(name)) => texts.push((name, count.to_string().into())),
            (Wire::Bytes(gpu), None) if number == GPU_NVIDIA => gpus.push(gpu),
            _ => {}
        }
    }
    let entries: Vec<(&str, Out<'_>)> = texts
        .iter()
        .map(|(name, text)| (*name, Out::Text(text)))
        .collect();
    if !entries.is_empty() {
        let body = Some(Out::Map(&entries));
        recorder.record_event(&event::RUN_ENVIRONMENT, time_unix_nanos, body, &[]);
    }
    for (index, bytes) in gpus.into_iter().enumerate() {
        gpu(index, bytes, time_unix_nanos, recorder)?;
    }
    Ok(())
}

fn gpu(
    index: usize,
    bytes: &[u8],
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) -> Result<(), WireError> {
    let mut attributes = vec![(&attribute::GPU_INDEX, Out::Int(index as i64))];
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (number, value) {
            (1, Wire::Bytes(name)) => attributes.push((&attribute::GPU_NAME, Out::Text(text(name)))),
            (2, Wire::Varint(size)) => attributes.push((&attribute::GPU_MEMORY_SIZE, Out::Int(size as i64))),
            (5, Wire::Bytes(uuid)) => attributes.push((&attribute::GPU_UUID, Out::Text(text(uuid)))),
            _ => {}
        }
    }
    recorder.record_event(&event::RUN_GPU_MODEL, time_unix_nanos, None, &attributes);
    Ok(())
}

/// Records an alert: `wandb.alert(title, text)`.
pub(super) fn alert(
    bytes: &[u8],
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) -> Result<(), WireError> {
    let (mut title, mut body) = ("", "");
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (number, value) {
            (1, Wire::Bytes(bytes)) => title = text(bytes),
            (2, Wire::Bytes(bytes)) => body = text(bytes),
            _ => {}
        }
    }
    let message = format!("{title}: {body}");
    let body = Some(Out::Text(&message));
    recorder.record_event(&event::RUN_MESSAGE, time_unix_nanos, body, &[]);
    Ok(())
}

fn named(names: &[(u32, &'static str)], number: u32) -> Option<&'static str> {
    names
        .iter()
        .find(|(known, _)| *known == number)
        .map(|(_, name)| *name)
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap_or_default()
}
