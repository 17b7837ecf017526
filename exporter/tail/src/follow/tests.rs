//! Checkpoints are acknowledged in order, in whatever order sinks acknowledge batches.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Ingress, Pipeline, Sink};
use pulsetrain_record::Run;
use tokio::sync::Semaphore;

use super::{
    Checkpointer, OpenMode,
    checkpoint_store::{FileCheckpoint, RunCheckpoint},
    checkpointer::CheckpointUpdate,
    identity::{FileIdentity, Inode},
};

const MINUTE: Duration = Duration::from_secs(60);

/// Delivers a batch for each permit.
struct Gated {
    permits: Arc<Semaphore>,
}

impl Sink for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async {
            self.permits.acquire().await.unwrap().forget();
            Delivery::Delivered
        })
    }
}

fn gated() -> (Pipeline, Ingress, Arc<Semaphore>) {
    let permits = Arc::new(Semaphore::new(0));
    let sink = Gated {
        permits: Arc::clone(&permits),
    };
    let (pipeline, ingress) = Pipeline::builder().sink(Box::new(sink)).start();
    (pipeline, ingress, permits)
}

fn batch() -> Batch {
    Batch::new(Signal::Metrics, 1, vec![0; 10])
}

/// Sends batches; the queue has room.
fn send(checkpointer: &Checkpointer, ingress: &Ingress, batches: Vec<Batch>, update: CheckpointUpdate) {
    let reserved = ingress.try_reserve(&batches).unwrap();
    checkpointer
        .send(ingress, batches, reserved, vec![update])
        .unwrap();
}

fn log() -> PathBuf {
    "/logs/training.json".into()
}

/// Returns the checkpoint of a file that was read to an offset.
pub(super) fn checkpoint(offset: u64) -> FileCheckpoint {
    let inode = Inode::from_metadata(&std::env::temp_dir().metadata().unwrap());
    FileCheckpoint {
        identity: FileIdentity::new(inode, b"[\n"),
        offset,
        line: 1,
        format: "surogate".to_owned(),
        run: RunCheckpoint::new(&Run::default()),
        timezone: None,
        last_local_before: 0,
        attempts: Default::default(),
        is_continued: false,
        has_ended: false,
        modified_unix_nanos: 0,
        emitted: None,
    }
}

fn read_to(offset: u64) -> CheckpointUpdate {
    CheckpointUpdate::Read(log(), Box::new(checkpoint(offset)))
}

/// The stored offset and number of the first unacknowledged entry.
fn stored(folder: &std::path::Path) -> (Option<u64>, u64) {
    let (file, _) = super::checkpoint_store::load(folder).unwrap();
    let offset = file.files.get(&log()).map(|checkpoint| checkpoint.offset);
    (offset, file.first_unacked)
}

#[tokio::test]
async fn a_checkpoint_is_acknowledged_with_its_batches() {
    let folder = tempfile::tempdir().unwrap();
    let checkpointer = Checkpointer::open(folder.path()).unwrap();
    let (pipeline, ingress, permits) = gated();
    send(&checkpointer, &ingress, vec![batch()], read_to(100));
    send(&checkpointer, &ingress, vec![batch(), batch()], read_to(200));
    // This one has no batches, but those before it are not delivered yet.
    send(&checkpointer, &ingress, Vec::new(), read_to(201));
    checkpointer.save().unwrap();
    assert_eq!(stored(folder.path()), (None, 0));

    permits.add_permits(2);
    while checkpointer.in_flight().1 > 2 {
        tokio::task::yield_now().await;
    }
    checkpointer.save().unwrap();
    assert_eq!(stored(folder.path()), (Some(100), 1));

    permits.add_permits(1);
    pipeline.drain(MINUTE).await;
    checkpointer.save().unwrap();
    assert_eq!(stored(folder.path()), (Some(201), 3));
    assert_eq!(checkpointer.in_flight(), (0, 0));
}

#[tokio::test]
async fn newest_of_files_with_equal_times_is_read_furthest() {
    let checkpointer = Checkpointer::in_memory();
    let (_pipeline, ingress, _permits) = gated();
    for (name, offset) in [("1", 100), ("2", 300), ("3", 200)] {
        let update = CheckpointUpdate::Read(name.into(), Box::new(checkpoint(offset)));
        send(&checkpointer, &ingress, Vec::new(), update);
    }
    let run = Run::default();
    let newest = checkpointer.newest_of_run("surogate", &run.id, run.attempt);
    assert_eq!(newest.unwrap().offset, 300);
}

#[tokio::test]
async fn updates_of_a_group_take_effect_together() {
    let checkpointer = Checkpointer::in_memory();
    let (pipeline, ingress, permits) = gated();
    let (batches, other) = (vec![batch(), batch()], PathBuf::from("/logs/other.json"));
    let updates = vec![
        read_to(100),
        CheckpointUpdate::Read(other.clone(), Box::new(checkpoint(7))),
    ];
    let reserved = ingress.try_reserve(&batches).unwrap();
    checkpointer.send(&ingress, batches, reserved, updates).unwrap();
    let offset = |path: &PathBuf| {
        checkpointer
            .checkpoint_of(path)
            .map(|checkpoint| checkpoint.offset)
    };
    assert_eq!(
        (offset(&log()), offset(&other)),
        (Some(100), Some(7)),
        "in flight"
    );
    assert_eq!(checkpointer.in_flight(), (20, 1));
    permits.add_permits(2);
    pipeline.drain(MINUTE).await;
    assert_eq!(
        (offset(&log()), offset(&other)),
        (Some(100), Some(7)),
        "acknowledged"
    );
    assert_eq!(checkpointer.in_flight(), (0, 0));
}

#[tokio::test]
async fn entries_after_an_undelivered_batch_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let checkpointer = Checkpointer::open(folder.path()).unwrap();
    let (pipeline, ingress, permits) = gated();
    permits.add_permits(1);
    for offset in [100, 200] {
        send(&checkpointer, &ingress, vec![batch()], read_to(offset));
    }
    send(&checkpointer, &ingress, Vec::new(), read_to(201));
    while checkpointer.in_flight().1 > 2 {
        tokio::task::yield_now().await;
    }
    pipeline.drain(Duration::ZERO).await;
    checkpointer.save().unwrap();
    assert_eq!(stored(folder.path()), (Some(100), 1));
}

#[tokio::test]
async fn while_a_journal_is_incomplete_no_checkpoint_is_written_and_the_error_is_returned_once() {
    let folder = tempfile::tempdir().unwrap();
    let checkpointer = Checkpointer::open(folder.path()).unwrap();
    let (pipeline, ingress, permits) = gated();
    permits.add_permits(1);
    send(&checkpointer, &ingress, vec![batch()], read_to(100));
    drop(ingress);
    pipeline.drain(MINUTE).await;
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    for output in ["a", "b"] {
        checkpointer.report_journal_error(output, Some(full()));
    }
    let message = |saved: Result<(), crate::TailError>| saved.unwrap_err().to_string();
    assert!(message(checkpointer.save_reporting_once()).contains(&full().to_string()));
    checkpointer.save_reporting_once().unwrap();
    checkpointer.report_journal_error("a", None);
    checkpointer.save_reporting_once().unwrap();
    assert!(message(checkpointer.save()).contains(&full().to_string()));
    assert_eq!(stored(folder.path()), (None, 0));
    checkpointer.report_journal_error("b", None);
    checkpointer.save_reporting_once().unwrap();
    assert_eq!(stored(folder.path()), (Some(100), 1));
}

#[tokio::test]
async fn checkpoints_are_written_only_after_their_outputs_are_synced() {
    let folder = tempfile::tempdir().unwrap();
    let checkpointer = Checkpointer::open(folder.path()).unwrap();
    let (pipeline, ingress, permits) = gated();
    permits.add_permits(1);
    send(&checkpointer, &ingress, vec![batch()], read_to(100));
    drop(ingress);
    pipeline.drain(MINUTE).await;
    let stored_at_sync = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (at_sync, path) = (Arc::clone(&stored_at_sync), folder.path().to_owned());
    let is_full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let full = Arc::clone(&is_full);
    checkpointer.sync_before_saving("out.jsonl", move || {
        at_sync.lock().unwrap().push(stored(&path));
        match full.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
    let error = checkpointer.save().unwrap_err().to_string();
    assert!(error.contains("the output out.jsonl cannot be synced"), "{error}");
    assert_eq!(stored(folder.path()), (None, 0));
    is_full.store(false, std::sync::atomic::Ordering::Relaxed);
    checkpointer.save().unwrap();
    assert_eq!(stored(folder.path()), (Some(100), 1));
    assert_eq!(
        *stored_at_sync.lock().unwrap(),
        [(None, 0), (None, 0)],
        "the sync is first"
    );
    checkpointer.save().unwrap();
    assert_eq!(stored_at_sync.lock().unwrap().len(), 2, "nothing has changed");
}

#[tokio::test]
async fn new_follower_resumes_after_in_flight_data() {
    let checkpointer = Checkpointer::in_memory();
    let (_pipeline, ingress, _permits) = gated();
    send(&checkpointer, &ingress, vec![batch()], read_to(100));
    let known = checkpointer.checkpoint_of(&log());
    assert_eq!(known.map(|checkpoint| checkpoint.offset), Some(100));
}

#[test]
fn output_is_recovered_only_once_per_process() {
    let checkpointer = Checkpointer::in_memory();
    let modes = || ["a", "b"].map(|output| checkpointer.open_mode(output));
    assert_eq!(modes(), [OpenMode::Recover; 2]);
    checkpointer.record_opened("a");
    assert_eq!(modes(), [OpenMode::Append, OpenMode::Recover]);
}

#[test]
fn a_state_folder_belongs_to_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = Checkpointer::open(folder.path()).unwrap();
    let refused = Checkpointer::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another pulsetrain"), "{refused}");
    drop(first);
    Checkpointer::open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_finished_file_is_known_before_its_batches_are_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rotated.log");
    std::fs::write(&path, b"[\n").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let inode = Inode::from_metadata(&file.metadata().unwrap());
    let checkpoint = FileCheckpoint {
        identity: FileIdentity::new(inode, b"[\n"),
        ..checkpoint(2)
    };
    let finished = CheckpointUpdate::Finished(log(), Box::new(checkpoint));
    let checkpointer = Checkpointer::in_memory();
    let (pipeline, ingress, permits) = gated();
    assert!(!checkpointer.is_finished(&file).unwrap());
    send(&checkpointer, &ingress, vec![batch()], finished);
    assert!(checkpointer.is_finished(&file).unwrap(), "it is in flight");
    permits.add_permits(1);
    drop(ingress);
    pipeline.drain(MINUTE).await;
    assert!(checkpointer.is_finished(&file).unwrap(), "it is delivered");
}

/// Follows files to their ends and returns the events.
fn follow(paths: Vec<PathBuf>, format: &'static pulsetrain_formats::LogFormat) -> Vec<super::TailEvent> {
    let (sender, events) = std::sync::mpsc::sync_channel(1000);
    let config = super::TailConfig {
        options: crate::RunOptions {
            format: Some(format),
            ..Default::default()
        },
        at_stop: super::AtStop::Finish,
        ..super::TailConfig::new(paths)
    };
    let source = super::TailSource::new(config, Checkpointer::in_memory(), move |event| {
        let _ = sender.send(event);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (pipeline, ingress) = Pipeline::builder().start();
        let stop = pulsetrain_pipeline::CancellationToken::new();
        stop.cancel();
        pulsetrain_pipeline::run_sources(vec![Box::new(source) as Box<_>], &ingress, &stop.clone()).await;
        drop(ingress);
        pipeline.drain(MINUTE).await;
    });
    events.into_iter().collect()
}

#[test]
fn a_parser_that_panics_ends_only_its_own_file() {
    let folder = tempfile::tempdir().unwrap();
    let [broken, healthy] = ["broken.log", "healthy.log"].map(|name| folder.path().join(name));
    std::fs::write(&broken, "one\ntwo\npanic\nfour\n").unwrap();
    std::fs::write(&healthy, "one\ntwo\nthree\n").unwrap();
    let events = follow(vec![broken.clone(), healthy.clone()], &crate::fragile::FORMAT);
    let ended = |path: &PathBuf| {
        let reports = events.iter().filter_map(|event| match event {
            super::TailEvent::Ended(report) if report.input == path.display().to_string() => Some(report),
            _ => None,
        });
        let reports: Vec<_> = reports.collect();
        assert_eq!(reports.len(), 1, "{events:?}");
        (
            reports[0].counts.records,
            reports[0].error.as_ref().map(ToString::to_string),
        )
    };
    assert_eq!(ended(&healthy), (3, None));
    let (records, error) = ended(&broken);
    let error = error.unwrap();
    assert_eq!(records, 2, "records before the panic");
    assert!(
        error.contains("broken.log") && error.contains("the line is fatal"),
        "{error}"
    );
    let problems = events
        .iter()
        .filter(|event| matches!(event, super::TailEvent::Problem(_)));
    assert_eq!(problems.count(), 1, "{events:?}");
}
