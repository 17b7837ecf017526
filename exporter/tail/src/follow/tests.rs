//! The order in which positions come to count, whatever the order in which sinks are done.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Door, Pipeline, Sink};
use tokio::sync::Semaphore;

use super::{
    OutputStart, Positions,
    identity::{FileIdentity, Inode},
    positions::Update,
    saved::{FilePosition, SavedRun},
};
use pulsetrain_record::Run;

const MINUTE: Duration = Duration::from_secs(60);

/// Takes a batch whenever it is let.
struct Held {
    let_in: Arc<Semaphore>,
}

impl Sink for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async {
            self.let_in.acquire().await.unwrap().forget();
            Delivery::Delivered
        })
    }
}

fn held() -> (Pipeline, Door, Arc<Semaphore>) {
    let let_in = Arc::new(Semaphore::new(0));
    let sink = Held {
        let_in: Arc::clone(&let_in),
    };
    let (pipeline, door) = Pipeline::builder().sink(Box::new(sink)).start();
    (pipeline, door, let_in)
}

fn batch() -> Batch {
    Batch::new(Signal::Metrics, 1, vec![0; 10])
}

/// Sends batches where there is room.
fn send(positions: &Positions, door: &Door, batches: Vec<Batch>, update: Option<Update>) {
    let reserved = door.try_reserve(&batches).unwrap();
    positions.send(door, batches, reserved, update).unwrap();
}

fn log() -> PathBuf {
    "/logs/training.json".into()
}

fn read_to(offset: u64) -> Option<Update> {
    let inode = Inode::of(&std::env::temp_dir().metadata().unwrap());
    let position = FilePosition {
        identity: FileIdentity::new(inode, b"[\n"),
        offset,
        line: 1,
        format: "surogate".to_owned(),
        run: SavedRun::of(&Run::default()),
        timezone: None,
        attempts: Default::default(),
        is_continued: false,
        has_ended: false,
        modified_unix_nanos: 0,
        told: None,
    };
    Some(Update::Read(log(), Box::new(position)))
}

/// The offset, and the first receipt that is not settled, that the next program would find.
fn kept(folder: &std::path::Path) -> (Option<u64>, u64) {
    let (saved, _) = super::saved::load(folder).unwrap();
    let offset = saved.files.get(&log()).map(|position| position.offset);
    (offset, saved.entries)
}

#[tokio::test]
async fn a_position_counts_when_its_batches_are_delivered_and_with_it_its_receipt() {
    let folder = tempfile::tempdir().unwrap();
    let positions = Positions::open(folder.path()).unwrap();
    let (pipeline, door, let_in) = held();
    send(&positions, &door, vec![batch()], read_to(100));
    send(&positions, &door, vec![batch(), batch()], read_to(200));
    // Nothing is to be delivered for this one, but what is before it is not delivered yet.
    send(&positions, &door, Vec::new(), read_to(201));
    positions.save().unwrap();
    assert_eq!(kept(folder.path()), (None, 0));

    let_in.add_permits(2);
    while positions.unsettled().1 > 2 {
        tokio::task::yield_now().await;
    }
    positions.save().unwrap();
    assert_eq!(kept(folder.path()), (Some(100), 1));

    let_in.add_permits(1);
    pipeline.drain(MINUTE).await;
    positions.save().unwrap();
    assert_eq!(kept(folder.path()), (Some(201), 3));
    assert_eq!(positions.unsettled(), (0, 0));
}

#[tokio::test]
async fn what_the_end_of_the_pipeline_kept_from_its_sink_is_read_again_with_all_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let positions = Positions::open(folder.path()).unwrap();
    let (pipeline, door, let_in) = held();
    let_in.add_permits(1);
    for offset in [100, 200] {
        send(&positions, &door, vec![batch()], read_to(offset));
    }
    send(&positions, &door, Vec::new(), read_to(201));
    while positions.unsettled().1 > 2 {
        tokio::task::yield_now().await;
    }
    pipeline.drain(Duration::ZERO).await;
    positions.save().unwrap();
    assert_eq!(kept(folder.path()), (Some(100), 1));
}

#[tokio::test]
async fn while_an_output_cannot_note_what_it_holds_no_position_is_written_and_that_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let positions = Positions::open(folder.path()).unwrap();
    let (pipeline, door, let_in) = held();
    let_in.add_permits(1);
    send(&positions, &door, vec![batch()], read_to(100));
    drop(door);
    pipeline.drain(MINUTE).await;
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    for output in ["a", "b"] {
        positions.note_behind(output, Some(full()));
    }
    let told = |told: Result<(), crate::TailError>| told.unwrap_err().to_string();
    assert!(told(positions.keep_saved()).contains(&full().to_string()));
    positions.keep_saved().unwrap();
    positions.note_behind("a", None);
    positions.keep_saved().unwrap();
    assert!(told(positions.save()).contains(&full().to_string()));
    assert_eq!(kept(folder.path()), (None, 0));
    positions.note_behind("b", None);
    positions.keep_saved().unwrap();
    assert_eq!(kept(folder.path()), (Some(100), 1));
}

#[tokio::test]
async fn positions_are_written_after_their_outputs_are_on_the_disk_and_not_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let positions = Positions::open(folder.path()).unwrap();
    let (pipeline, door, let_in) = held();
    let_in.add_permits(1);
    send(&positions, &door, vec![batch()], read_to(100));
    drop(door);
    pipeline.drain(MINUTE).await;
    let kept_at_sync = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (at_sync, path) = (Arc::clone(&kept_at_sync), folder.path().to_owned());
    let is_full = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let full = Arc::clone(&is_full);
    positions.sync_before_saving("out.jsonl", move || {
        at_sync.lock().unwrap().push(kept(&path));
        match full.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    });
    let told = positions.save().unwrap_err().to_string();
    assert!(told.contains("the output out.jsonl cannot be synced"), "{told}");
    assert_eq!(kept(folder.path()), (None, 0));
    is_full.store(false, std::sync::atomic::Ordering::Relaxed);
    positions.save().unwrap();
    assert_eq!(kept(folder.path()), (Some(100), 1));
    assert_eq!(
        *kept_at_sync.lock().unwrap(),
        [(None, 0), (None, 0)],
        "synced before"
    );
    positions.save().unwrap();
    assert_eq!(kept_at_sync.lock().unwrap().len(), 2, "nothing has changed");
}

#[tokio::test]
async fn a_follower_that_takes_over_goes_on_after_what_is_on_its_way() {
    let positions = Positions::in_memory();
    let (_pipeline, door, _held) = held();
    send(&positions, &door, vec![batch()], read_to(100));
    assert_eq!(positions.of(&log()).map(|position| position.offset), Some(100));
}

#[test]
fn an_output_is_recovered_once_in_a_program() {
    let positions = Positions::in_memory();
    let starts = || ["a", "b"].map(|output| positions.output_start(output));
    assert_eq!(starts(), [OutputStart::Recover; 2]);
    positions.note_opened("a");
    assert_eq!(starts(), [OutputStart::GoOn, OutputStart::Recover]);
}

#[test]
fn a_folder_of_positions_belongs_to_one_program_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = Positions::open(folder.path()).unwrap();
    let refused = Positions::open(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("another pulsetrain"), "{refused}");
    drop(first);
    Positions::open(folder.path()).unwrap();
}

#[tokio::test]
async fn a_file_that_was_read_to_its_end_is_known_before_its_batches_are_delivered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rotated.log");
    std::fs::write(&path, b"[\n").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let inode = Inode::of(&file.metadata().unwrap());
    let Some(Update::Read(_, mut position)) = read_to(2) else {
        unreachable!("it reads")
    };
    position.identity = FileIdentity::new(inode, b"[\n");
    let positions = Positions::in_memory();
    let (pipeline, door, let_in) = held();
    assert!(!positions.is_finished(&file).unwrap());
    send(
        &positions,
        &door,
        vec![batch()],
        Some(Update::Finished(log(), position)),
    );
    assert!(positions.is_finished(&file).unwrap(), "it is on its way");
    let_in.add_permits(1);
    drop(door);
    pipeline.drain(MINUTE).await;
    assert!(positions.is_finished(&file).unwrap(), "it is delivered");
}

/// Events of a follower, until it ends.
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
    let source = super::TailSource::new(config, Positions::in_memory(), move |event| {
        let _ = sender.send(event);
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (pipeline, door) = Pipeline::builder().start();
        let stop = pulsetrain_pipeline::StopRaiser::new();
        stop.raise();
        pulsetrain_pipeline::run_sources(vec![Box::new(source) as Box<_>], &door, &stop.stop()).await;
        drop(door);
        pipeline.drain(MINUTE).await;
    });
    events.into_iter().collect()
}

#[test]
fn a_parser_that_panics_ends_its_file_with_a_message_and_no_other() {
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
    assert_eq!(records, 2, "what came before is kept");
    assert!(
        error.contains("broken.log") && error.contains("the line is fatal"),
        "{error}"
    );
    let problems = events
        .iter()
        .filter(|event| matches!(event, super::TailEvent::Problem(_)));
    assert_eq!(problems.count(), 1, "{events:?}");
}
