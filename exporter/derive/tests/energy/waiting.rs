//! Steps that arrive before the reading after them: their wait and their result.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;
use pulsetrain_derive::{EnergyConfig, EnergyStage};
use pulsetrain_otlp::{Signal, write::AttributeValue};
use pulsetrain_pipeline::{Ack, Batch, clock};
use pulsetrain_semconv::{attribute, metric};

use crate::world::{Rank, SECOND, World, ZERO, energy, reading, spans};

/// Returns a world with a GPU of the rank that was read at 1 s and at 2 s.
fn read_until_two(config: EnergyConfig) -> World {
    let mut world = World::new(config);
    world.count("GPU-0", Some(&ZERO), &[(1, 0.0), (2, 300.0)]);
    world.out.clear();
    world
}

#[test]
fn step_is_released_by_the_first_reading_after_its_end() {
    let mut world = read_until_two(EnergyConfig::default());
    world.pass(ZERO.step(1, 3 * SECOND / 2, 5 * SECOND / 2));
    assert_eq!(world.out, [], "the reading after it has not come");
    world.pass(energy("GPU-0", Some(&ZERO), 3 * SECOND, 500.0));
    assert_eq!(world.step().joules(), 150.0 + 100.0);
}

#[test]
fn step_is_released_at_its_deadline_without_a_reading() {
    let mut world = read_until_two(EnergyConfig::default());
    world.pass(ZERO.step(1, 3 * SECOND / 2, 5 * SECOND / 2));
    world.pass(ZERO.step(2, 5 * SECOND / 2, 3 * SECOND));
    world.wait(Duration::from_millis(4999));
    assert_eq!(world.out, []);
    world.wait(Duration::from_millis(1));
    let steps = world.steps();
    assert_eq!(steps[0].status.as_deref(), Some("partial"));
    assert_eq!(steps[0].joules(), 150.0, "of its first half");
    assert_eq!(steps[1].status.as_deref(), Some("unknown"));
    assert_eq!(steps[1].get(&attribute::GPU_STEP_ENERGY), None);
}

#[test]
fn end_releases_pending_steps() {
    let mut world = read_until_two(EnergyConfig::default());
    world.pass(ZERO.step(1, 3 * SECOND / 2, 5 * SECOND / 2));
    world.finish();
    assert_eq!(world.step().status.as_deref(), Some("partial"));
}

#[test]
fn oldest_pending_step_is_released_at_the_limit() {
    let config = EnergyConfig {
        max_waiting: 3,
        ..EnergyConfig::default()
    };
    let mut world = read_until_two(config);
    for number in 0..5_i64 {
        world.pass(ZERO.step(number, 10 * SECOND, 11 * SECOND));
    }
    let gone: Vec<_> = world.steps().iter().map(|step| step.number).collect();
    assert_eq!(gone, [0.0, 1.0]);
}

#[test]
fn step_before_the_first_reading_is_unknown_and_does_not_wait() {
    let config = EnergyConfig {
        history: Duration::from_secs(60),
        ..EnergyConfig::default()
    };
    let mut world = World::new(config);
    for second in 1..=600 {
        world.pass(energy("GPU-0", Some(&ZERO), second * SECOND, second as f64));
    }
    world.out.clear();
    world.pass(ZERO.step(1, 5 * SECOND, 6 * SECOND));
    assert_eq!(world.step().status.as_deref(), Some("unknown"));
    world.out.clear();
    world.pass(ZERO.step(2, 550 * SECOND, 560 * SECOND));
    assert_eq!(world.step().status.as_deref(), Some("complete"));
}

#[test]
fn steps_of_hosts_without_known_gpus_pass_unchanged() {
    let mut world = World::new(EnergyConfig::default());
    let step = ZERO.step(1, SECOND, 2 * SECOND);
    world.pass(step.clone());
    assert_eq!(world.out.pop(), Some(step));
    let elsewhere = Rank {
        host: "another",
        ..ZERO
    };
    world.pass(energy("GPU-0", None, SECOND, 0.0));
    world.out.clear();
    let step = elsewhere.step(1, SECOND, 2 * SECOND);
    world.pass(step.clone());
    assert_eq!(world.out, [step], "the GPU is of another host");
}

#[test]
fn gpus_with_power_only_defer_no_step() {
    let mut world = World::new(EnergyConfig::default());
    for second in 1..3 {
        let power = &metric::GPU_POWER;
        world.pass(reading("0", Some(&ZERO), power, second * SECOND, 300.0, &[]));
    }
    world.out.clear();
    let step = ZERO.step(1, SECOND, 9 * SECOND);
    world.pass(step.clone());
    assert_eq!(world.out.pop(), Some(step));
    world.draw_100_watts(None, 1..=2);
    world.out.clear();
    world.pass(ZERO.step(2, SECOND, 2 * SECOND));
    assert_eq!(world.step().joules(), 100.0, "the log's GPU is not one more");
    assert_eq!(world.step().status.as_deref(), Some("complete"));
}

#[test]
fn derived_metrics_are_not_derived_again() {
    let mut world = read_until_two(EnergyConfig::default());
    world.pass(ZERO.step(1, SECOND, 2 * SECOND));
    let derived = world.out[0].clone();
    let mut relay = read_until_two(EnergyConfig::default());
    relay.pass(derived.clone());
    assert_eq!(relay.out, [derived]);
}

#[test]
fn only_steps_are_deferred_and_other_records_pass() {
    let mut world = read_until_two(EnergyConfig::default());
    let loss = [(&attribute::TRAIN_LOSS, AttributeValue::Double(2.5))];
    let step = ZERO.step_with(4, 3 * SECOND, 4 * SECOND, &loss);
    let mut data = TracesData::decode(step.bytes().clone()).expect("spans");
    data.resource_spans[0].schema_url = "of the resource".to_owned();
    let scope = &mut data.resource_spans[0].scope_spans[0];
    scope.schema_url = "of the scope".to_owned();
    let mut other = scope.spans[0].clone();
    other.name = "perf.forward".to_owned();
    scope.spans.insert(0, other);
    // A field of a future version.
    let mut bytes = data.encode_to_vec();
    bytes.extend_from_slice(&[0x9a, 0x06, 0x02, b'o', b'k']);
    world.pass(Batch::new(Signal::Traces, 2, bytes));
    assert_eq!(world.out.len(), 1);
    assert_eq!(world.out[0].items(), 1);
    assert!(world.out[0].bytes().ends_with(&[0x9a, 0x06, 0x02, b'o', b'k']));
    assert_eq!(spans(&world.out[0])[0].name, "perf.forward");
    world.pass(energy("GPU-0", Some(&ZERO), 4 * SECOND, 900.0));
    let mut batches = world.out.iter();
    let held = batches.rfind(|batch| batch.signal() == Signal::Traces);
    let held = TracesData::decode(held.expect("the step").bytes().clone()).expect("spans");
    let (resource, before) = (&held.resource_spans[0], &data.resource_spans[0]);
    assert_eq!(
        (&resource.resource, &resource.schema_url),
        (&before.resource, &before.schema_url)
    );
    let (scope, scope_before) = (&resource.scope_spans[0], &before.scope_spans[0]);
    assert_eq!(
        (&scope.scope, &scope.schema_url),
        (&scope_before.scope, &scope_before.schema_url)
    );
    let (span, span_before) = (&scope.spans[0], &scope_before.spans[1]);
    assert!(span.attributes.starts_with(&span_before.attributes));
    assert_eq!(
        (&span.span_id, span.end_time_unix_nano),
        (&span_before.span_id, span_before.end_time_unix_nano)
    );
}

#[test]
fn ack_is_not_settled_while_a_step_of_its_batch_is_pending() {
    let mut world = read_until_two(EnergyConfig::default());
    let settled = Arc::<AtomicBool>::default();
    let seen = Arc::clone(&settled);
    let ack = Arc::new(Ack::new(move |_| seen.store(true, Ordering::Relaxed)));
    world.pass(ZERO.step(1, 3 * SECOND, 4 * SECOND).with_ack(ack));
    assert!(!settled.load(Ordering::Relaxed));
    world.finish();
    assert!(!settled.load(Ordering::Relaxed), "it is on its way now");
    world.out.clear();
    assert!(settled.load(Ordering::Relaxed));
}

#[test]
fn every_item_passes_exactly_once_plus_derived_items() {
    let added = Arc::<AtomicU64>::default();
    let count = Arc::clone(&added);
    let mut world = read_until_two(EnergyConfig::default());
    world.stage = EnergyStage::new(EnergyConfig::default()).watched(move |batch: &Batch| {
        count.fetch_add(u64::from(batch.items()), Ordering::Relaxed);
    });
    let mut put = 0;
    for number in 0..50_i64 {
        let start = number as u64 * SECOND / 3;
        for batch in [
            ZERO.step(number, start, start + SECOND / 3),
            energy("GPU-0", Some(&ZERO), start, 10.0 * number as f64),
            ZERO.durations(number as u64 + 1, number as f64 / 3.0, start),
        ] {
            put += u64::from(batch.items());
            world.pass(batch);
        }
    }
    world.finish();
    let came: u64 = world.out.iter().map(|batch| u64::from(batch.items())).sum();
    let derived = added.load(Ordering::Relaxed);
    assert!(derived > 50, "{derived}");
    assert_eq!(came, put + derived);
}

#[test]
fn malformed_batches_pass_unchanged() {
    let mut world = read_until_two(EnergyConfig::default());
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        let garbage = Batch::new(signal, 3, vec![0x0a, 0xff, 0xff]);
        world.pass(garbage.clone());
        assert_eq!(world.out.pop(), Some(garbage));
    }
}

#[test]
fn derived_values_are_replayed_with_their_step() {
    let mut world = read_until_two(EnergyConfig::default());
    let step = |number: u64| {
        let start = SECOND + number * SECOND / 4;
        ZERO.step(number as i64, start, start + SECOND / 4)
    };
    let watched = [1, 2].map(|number| Arc::new(Ack::new(drop).numbered(number)));
    world.pass(step(1).with_ack(Arc::clone(&watched[0])));
    world.pass(step(2).with_ack(Arc::clone(&watched[1])));
    world.pass(step(3));
    let of_step = |world: &World, signal| {
        let batches = world.out.iter().filter(move |batch| batch.signal() == signal);
        batches.map(Batch::ack_number).collect::<Vec<_>>()
    };
    let expected = [Some(1), Some(2), None];
    assert_eq!(of_step(&world, Signal::Traces), expected);
    assert_eq!(of_step(&world, Signal::Metrics), expected);
}

#[test]
fn step_of_a_point_keeps_its_ack_until_its_energy_is_known() {
    let mut world = read_until_two(EnergyConfig::default());
    let settled = Arc::<AtomicBool>::default();
    let seen = Arc::clone(&settled);
    let ack = Arc::new(Ack::new(move |_| seen.store(true, Ordering::Relaxed)));
    world.pass(ZERO.durations(1, 0.5, 2 * SECOND).with_ack(ack));
    world.out.clear();
    assert!(!settled.load(Ordering::Relaxed), "its spans may still come");
    world.wait(Duration::from_secs(5));
    assert!(!world.out.is_empty() && !settled.load(Ordering::Relaxed));
    world.out.clear();
    assert!(settled.load(Ordering::Relaxed));
}

#[test]
fn replayed_steps_use_the_readings_from_before_the_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gpu-readings.binpb");
    let remembering = || {
        let mut world = World::new(EnergyConfig::default());
        world.stage = EnergyStage::new(EnergyConfig::default())
            .with_reading_log(&path)
            .expect("the file can be written");
        world
    };
    let mut world = remembering();
    world.draw_100_watts(Some(&ZERO), 0..=3);
    drop(world);
    let deadline = clock::later(clock::now(), Duration::from_secs(20));
    while kept(&path) < 4 {
        assert!(clock::now() < deadline, "the readings are not kept");
        std::thread::yield_now();
    }
    let mut world = remembering();
    world.pass(ZERO.step(1, SECOND / 2, 3 * SECOND / 2));
    assert!((world.step().joules() - 100.0).abs() < 1e-9);
}

/// Returns the number of batches in a file of readings.
fn kept(path: &Path) -> usize {
    let bytes = std::fs::read(path).expect("it is there");
    let (mut rest, mut count) = (&bytes[..], 0);
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        count += usize::from(behind.len() >= length);
        rest = behind.get(length..).unwrap_or_default();
    }
    count
}
