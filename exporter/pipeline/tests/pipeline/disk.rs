//! Tests of sinks with a disk queue, in real time: the thread of the queue does not support paused time.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    slice,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use pulsetrain_pipeline::{
    Ack, Batch, DropReason, Ingress, Pipeline, PipelineBuilder, PipelineConfig, Requirement, Reservation,
    ReserveError, RetryConfig, Sink, SinkCounts, SinkRoute, SinkTaskConfig, clock,
    disk::{DiskQueue, DiskQueueConfig, Notice, SyncPolicy},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::fake_sink::{Answer, FakeSink, Witness, batch};

const TIMEOUT: Duration = Duration::from_secs(20);
const TICK: Duration = Duration::from_millis(2);
const NO_TIME: Duration = Duration::ZERO;

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = timeout(TIMEOUT, async {
        while !is_so() {
            sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "never: {what}");
}

/// Opens a queue in this folder as soon as the previous queue has ended.
pub(crate) async fn open(config: &DiskQueueConfig) -> DiskQueue {
    let mut opened = None;
    until("the folder is free", || {
        opened = DiskQueue::open(config.clone(), |_| {}).ok();
        opened.is_some()
    })
    .await;
    opened.expect("it was waited for")
}

pub(crate) fn task(disk: DiskQueue) -> SinkTaskConfig {
    let retry = RetryConfig {
        initial: Duration::from_millis(5),
        max: Duration::from_millis(20),
        ..RetryConfig::default()
    };
    SinkTaskConfig {
        disk: Some(disk),
        retry,
        ..SinkTaskConfig::default()
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn config(folder: &TempDir) -> DiskQueueConfig {
    DiskQueueConfig::new(folder.path().join("queue"))
}

fn dead() -> (Box<dyn Sink>, Witness) {
    FakeSink::scripted("sink", [Answer::Retry(None).at_once()])
}

fn healthy() -> (Box<dyn Sink>, Witness) {
    FakeSink::scripted("sink", [Answer::Take.at_once()])
}

/// Returns a builder whose disk queues have ample time at the end.
pub(crate) fn builder() -> PipelineBuilder {
    Pipeline::builder().config(PipelineConfig {
        finish_grace: TIMEOUT,
        ..PipelineConfig::default()
    })
}

async fn start(config: &DiskQueueConfig, sink: Box<dyn Sink>) -> (Pipeline, Ingress) {
    let task = task(open(config).await);
    builder().sink_with(sink, Requirement::Required, task).start()
}

/// Sends like a receiver, and waits until the batch may be acknowledged.
pub(crate) async fn push(ingress: &Ingress, batch: Batch) -> Result<(), ReserveError> {
    let mut reserved = ingress.try_reserve(slice::from_ref(&batch))?;
    let sent = ingress.send_reserved(batch, &mut reserved);
    sent.map_err(|_| ReserveError::Closed)?;
    reserved.held().await.map_err(|_| ReserveError::Closed)
}

fn counts(pipeline: &Pipeline) -> SinkCounts {
    pipeline.ledger().snapshot().remove(0)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("it is there") {
        let path = entry.expect("it is there").path();
        let name = path.file_name().expect("a file has a name");
        fs::copy(&path, to.join(name)).expect("it can be copied");
    }
}

#[tokio::test]
async fn acknowledged_batches_survive_a_kill_and_are_delivered_in_order() {
    let folder = folder();
    for sync in [
        SyncPolicy::Always,
        SyncPolicy::Never,
        SyncPolicy::Interval(Duration::from_secs(3600)),
    ] {
        let config = DiskQueueConfig {
            sync,
            ..config(&folder)
        };
        let (pipeline, ingress) = start(&config, dead().0).await;
        for id in 0..20 {
            push(&ingress, batch(id, 3, 100)).await.unwrap();
        }
        // The state that a killed process leaves: nothing is written at its end.
        let left = DiskQueueConfig::new(folder.path().join(format!("{sync:?}")));
        copy(&config.folder, &left.folder);
        pipeline.drain(NO_TIME).await;
        fs::remove_dir_all(&config.folder).unwrap();

        let (sink, witness) = healthy();
        let (pipeline, _ingress) = start(&left, sink).await;
        assert_eq!(counts(&pipeline).accepted, 60, "what is replayed is accepted");
        until("all are delivered", || witness.books().received == 60).await;
        assert_eq!(witness.received_ids(), (0..20).collect::<Vec<_>>());
        let report = pipeline.drain(TIMEOUT).await.remove(0);
        assert_eq!((report.counts.delivered, report.counts.on_disk_items()), (60, 0));
    }
}

#[tokio::test]
async fn drain_keeps_undelivered_batches_of_a_dead_sink_on_disk() {
    let folder = folder();
    let config = config(&folder);
    let (pipeline, ingress) = start(&config, dead().0).await;
    for id in 0..5 {
        push(&ingress, batch(id, 2, 50)).await.unwrap();
    }
    let report = pipeline.drain(Duration::from_millis(50)).await.remove(0);
    let on_disk = report.counts.on_disk.clone().expect("it has a disk queue");
    assert_eq!((on_disk.items, on_disk.folder), (10, config.folder.clone()));
    assert!(on_disk.oldest_age.is_some());
    assert_eq!((report.counts.dropped_items(), report.counts.queued), (0, 0));
    assert_eq!(report.finished, Ok(()));
    assert!(push(&ingress, batch(6, 1, 10)).await.is_err(), "it is closed");

    let (sink, witness) = healthy();
    let (pipeline, _ingress) = start(&config, sink).await;
    let report = pipeline.drain(TIMEOUT).await.remove(0);
    assert_eq!(report.counts.delivered, 10);
    assert_eq!(witness.received_ids(), [0, 1, 2, 3, 4]);
    let files = fs::read_dir(&config.folder).unwrap().count();
    assert_eq!(files, 2, "an empty queue has no file but its lock and its cursor");
}

#[tokio::test(start_paused = true)]
async fn hanging_disks_delay_the_drain_concurrently() {
    let folder = folder();
    let (stalled, is_stalled) = mpsc::sync_channel(3);
    let (mut pipeline, mut hanging) = (Pipeline::builder(), Vec::new());
    for name in ["a", "b", "c"] {
        let config = DiskQueueConfig::new(folder.path().join(name));
        let (release, released) = mpsc::sync_channel::<()>(0);
        let stalled = stalled.clone();
        // The thread of the disk queue hangs in its first report.
        let report = move |_: &Notice| {
            let _ = stalled.send(());
            let _ = released.recv();
        };
        let disk = DiskQueue::open(config.clone(), report).unwrap();
        let (sink, _) = FakeSink::scripted(name, [Answer::Take.at_once()]);
        pipeline = pipeline.sink_with(sink, Requirement::Required, task(disk));
        fs::remove_dir_all(&config.folder).unwrap();
        fs::write(&config.folder, "").unwrap();
        hanging.push(release);
    }
    let (pipeline, ingress) = pipeline.start();
    ingress.try_send_or_drop(batch(0, 1, 50)).unwrap();
    for _ in &hanging {
        is_stalled.recv().unwrap();
    }
    let (begin, second) = (clock::now(), Duration::from_secs(1));
    let reports = pipeline.drain(second).await;
    let took = clock::now() - begin;
    assert!(
        took < second * 5 / 2,
        "a second to drain and one to finish: {took:?}"
    );
    for report in reports {
        let error = report.finished.unwrap_err();
        assert!(error.what.contains("did not answer in time"), "{error}");
    }
}

#[tokio::test]
async fn replacement_sink_continues_with_the_disk_queue() {
    let folder = folder();
    let disk = open(&config(&folder)).await;
    let (hanging, old) = FakeSink::scripted("sink", [Answer::Take.at_once(), Answer::Hang.at_once()]);
    let (mut pipeline, ingress) = builder()
        .sink_with(hanging, Requirement::Required, task(disk))
        .start();
    for id in 0..10 {
        push(&ingress, batch(id, 1, 50)).await.unwrap();
    }
    until("one hangs", || old.books().attempts.len() == 2).await;
    let disk = pipeline.disk_queue("sink").expect("it has one");
    let replaced = pipeline.expect_sink("sink", SinkRoute::ALL, task(disk), Duration::from_millis(30));
    push(&ingress, batch(10, 1, 50)).await.unwrap();
    let (sink, new) = healthy();
    assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
    let report = replaced.expect("there was one").await;
    assert_eq!((report.counts.accepted, report.counts.delivered), (1, 1));
    assert_eq!(
        (report.counts.dropped_items(), report.counts.on_disk),
        (0, None),
        "the rest is with the other sink"
    );
    until("all are delivered", || new.books().received == 10).await;
    assert_eq!(new.received_ids(), (1..11).collect::<Vec<_>>());
    let counts = pipeline.drain(TIMEOUT).await.remove(0).counts;
    assert_eq!((counts.accepted, counts.delivered), (10, 10));
}

#[tokio::test]
async fn sink_that_is_added_again_while_the_removed_one_drains_continues_with_its_disk_queue() {
    let folder = folder();
    let disk = open(&config(&folder)).await;
    let hour = Duration::from_secs(3600);
    let (waiting, old) = FakeSink::scripted("sink", [Answer::Retry(Some(hour)).at_once()]);
    let (mut pipeline, ingress) = builder()
        .sink_with(waiting, Requirement::Required, task(disk.clone()))
        .start();
    for id in 0..5 {
        push(&ingress, batch(id, 1, 50)).await.unwrap();
    }
    until("the receiver asked for a wait", || {
        old.books().attempts.len() == 1
    })
    .await;
    let removed = pipeline.remove_sink("sink", 2 * hour).expect("it is there");
    // The worker sees that the drain has begun, and waits for the next attempt.
    tokio::task::yield_now().await;
    assert!(disk.keep_open(), "the removed sink drains");
    assert!(
        pipeline
            .expect_sink("sink", SinkRoute::ALL, task(disk.clone()), NO_TIME)
            .is_none()
    );
    push(&ingress, batch(5, 1, 50)).await.unwrap();
    let report = timeout(TIMEOUT, removed).await.expect("it leaves at once");
    assert_eq!((report.counts.accepted, report.counts.dropped_items()), (0, 0));
    assert_eq!(report.finished, Ok(()));
    assert!(!disk.is_closed(), "it belongs to the other sink");
    let (sink, new) = healthy();
    assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
    until("all are delivered", || new.books().received == 6).await;
    assert_eq!(new.received_ids(), (0..6).collect::<Vec<_>>());
    let counts = pipeline.drain(TIMEOUT).await.remove(0).counts;
    assert_eq!((counts.accepted, counts.delivered), (6, 6));
    assert!(disk.is_closed() && !disk.keep_open());
}

#[tokio::test]
async fn accepted_items_never_fall_in_the_ledger_while_sinks_are_replaced() {
    let folder = folder();
    let disk = open(&config(&folder)).await;
    let (mut pipeline, ingress) = builder().start();
    pipeline.expect_sink("sink", SinkRoute::ALL, task(disk.clone()), NO_TIME);
    let (ledger, is_over) = (pipeline.ledger().clone(), Arc::new(AtomicBool::new(false)));
    let ends = Arc::clone(&is_over);
    let reader = thread::spawn(move || {
        let mut accepted = BTreeMap::new();
        while !ends.load(Ordering::Relaxed) {
            for counts in ledger.snapshot() {
                let before = accepted.insert(counts.account, counts.accepted);
                assert!(before <= Some(counts.accepted), "{before:?}, then {counts:?}");
            }
        }
    });
    for id in 0..300 {
        push(&ingress, batch(id, 1, 50)).await.unwrap();
        // Another size of the queue in memory, so that the task is replaced.
        let mut config = task(disk.clone());
        config.queue.max_batches += id as usize;
        let replaced = pipeline.expect_sink("sink", SinkRoute::ALL, config, NO_TIME);
        if let Some(replaced) = replaced {
            replaced.await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    reader.join().expect("no sum fell");
    assert_eq!(counts(&pipeline).accepted, 300);
}

#[tokio::test]
async fn kept_open_disk_queue_outlives_its_sink_and_closes_after_the_next_one() {
    let folder = folder();
    let disk = open(&config(&folder)).await;
    let (mut pipeline, ingress) = builder()
        .sink_with(dead().0, Requirement::Required, task(disk.clone()))
        .start();
    push(&ingress, batch(0, 1, 50)).await.unwrap();
    assert!(disk.keep_open());
    pipeline.remove_sink("sink", NO_TIME).expect("it is there").await;
    assert!(!disk.is_closed());
    pipeline.expect_sink("sink", SinkRoute::ALL, task(disk.clone()), NO_TIME);
    let (sink, new) = healthy();
    assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
    until("it is delivered", || new.books().received == 1).await;
    pipeline.drain(TIMEOUT).await;
    assert!(disk.is_closed());
}

#[tokio::test]
async fn ack_is_settled_once_the_batch_is_on_disk_although_the_sink_is_dead() {
    for (sync, is_settled_at_once) in [
        (SyncPolicy::Always, true),
        (SyncPolicy::Never, true),
        (SyncPolicy::Interval(Duration::from_secs(3600)), false),
        (SyncPolicy::Interval(Duration::from_millis(10)), true),
    ] {
        let folder = folder();
        let config = DiskQueueConfig {
            sync,
            ..config(&folder)
        };
        let (pipeline, ingress) = start(&config, dead().0).await;
        let is_settled = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_settled);
        let ack = Arc::new(Ack::new(move |outcome| {
            assert!(!outcome.is_cut_off);
            seen.store(true, Ordering::Relaxed);
        }));
        push(&ingress, batch(1, 1, 10).with_ack(ack)).await.unwrap();
        if is_settled_at_once {
            until("it is settled", || is_settled.load(Ordering::Relaxed)).await;
        } else {
            push(&ingress, batch(2, 1, 10)).await.unwrap();
            assert!(!is_settled.load(Ordering::Relaxed), "it may be in memory only");
        }
        pipeline.drain(NO_TIME).await;
        assert!(is_settled.load(Ordering::Relaxed), "the end syncs");
    }
}

#[tokio::test]
async fn full_disk_queue_applies_backpressure_until_batches_are_delivered() {
    let folder = folder();
    let config = DiskQueueConfig {
        max_bytes: 300_000,
        ..config(&folder)
    };
    let (pipeline, ingress) = start(&config, dead().0).await;
    let mut pushed = 0;
    while push(&ingress, batch(pushed, 1, 20_000)).await.is_ok() {
        pushed += 1;
    }
    assert!((12..15).contains(&pushed), "{pushed} batches of 20 kB in 300 kB");
    let too_large = push(&ingress, batch(99, 1, 400_000)).await;
    assert!(
        matches!(too_large, Err(ReserveError::TooLarge { .. })),
        "{too_large:?}"
    );
    let on_disk = counts(&pipeline).on_disk.expect("it has a disk queue");
    assert!(on_disk.file_bytes <= config.max_bytes, "{on_disk:?}");
    pipeline.drain(NO_TIME).await;

    let (sink, witness) = healthy();
    let (pipeline, ingress) = start(&config, sink).await;
    until("all are delivered", || {
        witness.books().received == u64::from(pushed)
    })
    .await;
    // The batch needs all of the room, including that of delivered batches.
    let large = batch(99, 1, 290_000);
    let room = timeout(TIMEOUT, async {
        while push(&ingress, large.clone()).await.is_err() {
            sleep(TICK).await;
        }
    });
    room.await.expect("there is room in the end");
    assert_eq!(counts(&pipeline).dropped_items(), 0);
}

#[tokio::test]
async fn failing_disk_counts_as_a_full_queue_and_is_reported_once() {
    let folder = folder();
    let config = config(&folder);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&notices);
    let report = move |notice: &Notice| seen.lock().expect("nothing panics here").push(notice.to_string());
    let disk = DiskQueue::open(config.clone(), report).unwrap();
    let (mut pipeline, ingress) = builder().start();
    // A sink that is not open yet reads nothing.
    pipeline.expect_sink("sink", SinkRoute::ALL, task(disk), NO_TIME);
    push(&ingress, batch(0, 5, 50)).await.unwrap();
    // A file in the place of the folder makes every write fail.
    fs::remove_dir_all(&config.folder).unwrap();
    fs::write(&config.folder, "").unwrap();
    let batches = [batch(1, 5, 50)];
    let mut reserved = ingress.try_reserve(&batches).unwrap();
    let [first] = batches;
    ingress.send_reserved(first, &mut reserved).unwrap();
    let mut held = Box::pin(reserved.held());
    until("it has no room", || {
        ingress.try_reserve(&[batch(2, 5, 50)]).err() == Some(ReserveError::Full)
    })
    .await;
    let is_held = timeout(NO_TIME, &mut held).await.is_ok();
    assert!(!is_held, "nothing can be written");
    fs::remove_file(&config.folder).unwrap();
    timeout(TIMEOUT, held).await.expect("it works again").unwrap();
    until("it has room", || push_now(&ingress)).await;
    // The notices are the last action of the pass that counts the loss.
    until("the loss is reported", || {
        let notices = notices.lock().expect("nothing panics here");
        notices
            .iter()
            .any(|notice| notice.contains("because the folder was deleted"))
    })
    .await;
    let counts = counts(&pipeline);
    assert_eq!(counts.dropped_for(DropReason::Unreadable), 5, "{counts:?}");
    let notices = notices.lock().expect("nothing panics here").clone();
    let count = |words: &str| notices.iter().filter(|notice| notice.contains(words)).count();
    assert_eq!(count("nothing more is accepted until then"), 1, "{notices:?}");
    assert_eq!(count("works again"), 1, "{notices:?}");
    assert_eq!(
        count("lost 5 items, because the folder was deleted"),
        1,
        "{notices:?}"
    );
}

#[tokio::test]
async fn disk_recovers_only_when_the_failed_operation_succeeds() {
    let folder = folder();
    let config = config(&folder);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&notices);
    let report = move |notice: &Notice| seen.lock().expect("nothing panics here").push(notice.to_string());
    let has = |words: &str| {
        let notices = notices.lock().expect("nothing panics here");
        notices.iter().any(|notice| notice.contains(words))
    };
    let disk = DiskQueue::open(config.clone(), report).unwrap();
    // The cursor cannot be written, but records can.
    let obstacle = config.folder.join("cursor.new");
    fs::create_dir(&obstacle).unwrap();
    let (sink, _) = FakeSink::scripted("sink", [Answer::Take.at_once(), Answer::Retry(None).at_once()]);
    let (pipeline, ingress) = builder()
        .sink_with(sink, Requirement::Required, task(disk))
        .start();
    for id in 0..2 {
        push(&ingress, batch(id, 1, 50)).await.unwrap();
    }
    until("it is reported", || has("nothing more is accepted until then")).await;
    let mut unreserved = Reservation::default();
    ingress.send_reserved(batch(2, 1, 50), &mut unreserved).unwrap();
    timeout(TIMEOUT, unreserved.held()).await.unwrap().unwrap();
    assert!(!has("works again"), "the record was written, and not the cursor");
    fs::remove_dir(&obstacle).unwrap();
    until("the cursor is written", || config.folder.join("cursor").exists()).await;
    until("it works again", || has("works again")).await;
    until("it has room", || push_now(&ingress)).await;
    pipeline.drain(NO_TIME).await;
}

fn push_now(ingress: &Ingress) -> bool {
    ingress.try_reserve(&[batch(3, 5, 50)]).is_ok()
}

#[tokio::test]
async fn batch_over_the_maximum_age_is_dropped_while_the_sink_fails() {
    let folder = folder();
    let config = DiskQueueConfig {
        max_age: Some(Duration::from_millis(40)),
        ..config(&folder)
    };
    let (pipeline, ingress) = start(&config, dead().0).await;
    for id in 0..5 {
        push(&ingress, batch(id, 1, 50)).await.unwrap();
    }
    until("all are dropped", || {
        counts(&pipeline).dropped_for(DropReason::RetriesExhausted) == 5
    })
    .await;
    until("the files are deleted", || {
        counts(&pipeline)
            .on_disk
            .is_some_and(|on_disk| on_disk.file_bytes == 0)
    })
    .await;
}
