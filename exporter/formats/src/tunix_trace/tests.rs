//! Synthetic traces for cases that the samples lack.

use std::{cell::RefCell, collections::BTreeMap};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{AnyValue, Message, TracesData},
};
use pulsetrain_perfetto::{EventKind, Item, Time, TraceEvent, Track};

use super::{TunixTrace, Version};
use crate::logs::sampled::reasons;
use pulsetrain_record::{ParseReport, Recorder, Run, SkipReason, SourcePosition, ids};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_795_219_880 * SECOND;

/// A recorded span.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    start: u64,
    end: u64,
    attributes: BTreeMap<String, String>,
    links: Vec<(Vec<u8>, Vec<u8>)>,
}

#[derive(Default)]
struct TraceBuilder(Vec<Item>);

impl TraceBuilder {
    fn track(mut self, uuid: u64, parent: Option<u64>, name: &str) -> Self {
        self.0.push(Item::Track(Track {
            uuid,
            parent,
            name: name.to_owned(),
            ..Track::default()
        }));
        self
    }

    fn event(mut self, track_uuid: u64, kind: EventKind, nanos: u64, name: &str) -> Self {
        self.0.push(Item::Event(TraceEvent {
            track_uuid,
            time: Time::Clock { id: 6, nanos },
            kind,
            name: name.to_owned(),
            categories: Vec::new(),
            annotations: Vec::new(),
            flows: Vec::new(),
            ended_flows: Vec::new(),
            correlation: None,
            value: None,
        }));
        self
    }

    fn begin(self, track: u64, nanos: u64, name: &str) -> Self {
        self.event(track, EventKind::Begin, nanos, name)
    }

    fn end(self, track: u64, nanos: u64) -> Self {
        self.event(track, EventKind::End, nanos, "")
    }

    /// A slice without others in it, or any slice of version 1.
    fn slice(self, track: u64, start: u64, end: u64, name: &str) -> Self {
        self.begin(track, start, name).end(track, end)
    }

    fn read(self, version: Version) -> (Vec<Span>, ParseReport) {
        self.read_at(version, UnixNanos(START))
    }

    fn read_at(self, version: Version, start_unix_nanos: UnixNanos) -> (Vec<Span>, ParseReport) {
        let batches = RefCell::new(Vec::new());
        let run = Run {
            start_unix_nanos,
            ..run()
        };
        let mut recorder = Recorder::new(run, |batch| batches.borrow_mut().push(batch));
        let mut trace = TunixTrace::new(version);
        for item in self.0 {
            trace.item(item, SourcePosition::default(), &mut recorder);
        }
        trace.end(&mut recorder);
        let skipped = recorder.finish().1;
        let batches = batches.into_inner();
        let traces = batches.iter().filter(|batch| batch.signal == Signal::Traces);
        (traces.flat_map(|batch| spans(&batch.bytes)).collect(), skipped)
    }
}

fn run() -> Run {
    Run {
        id: "r".to_owned(),
        ..Run::default()
    }
}

fn spans(bytes: &[u8]) -> Vec<Span> {
    let data = TracesData::decode(bytes).expect("what we wrote can be read");
    let resources = data
        .resource_spans
        .iter()
        .map(|resource| resource.expect("it can"));
    let scopes = resources.flat_map(|resource| resource.scope_spans.iter());
    let spans = scopes.flat_map(|scope| scope.expect("it can").spans.iter());
    spans.map(|span| read(&span.expect("it can"))).collect()
}

fn read(span: &pulsetrain_otlp::view::Span<'_>) -> Span {
    let value = |value: Option<AnyValue<'_>>| match value {
        Some(AnyValue::String(text)) => text.to_string(),
        Some(AnyValue::Int(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let attributes = span.attributes.iter().map(|attribute| {
        let attribute = attribute.expect("it can be read");
        (attribute.key.to_string(), value(attribute.value))
    });
    let links = span.links.iter().map(|link| link.expect("it can be read"));
    Span {
        name: span.name.to_string(),
        trace: span.trace_id.to_vec(),
        id: span.span_id.to_vec(),
        parent: span.parent_span_id.to_vec(),
        start: span.start_time_unix_nano,
        end: span.end_time_unix_nano,
        attributes: attributes.collect(),
        links: links
            .map(|link| (link.trace_id.to_vec(), link.span_id.to_vec()))
            .collect(),
    }
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let found = spans.iter().find(|span| span.name == name);
    found.unwrap_or_else(|| panic!("{name} in {spans:?}"))
}

/// The tracks of version 2: a thread and a device with two lanes.
fn timelines() -> TraceBuilder {
    TraceBuilder::default()
        .track(100_000, None, "Host - Main threads")
        .track(100_002, None, "Actor, Rollout Cluster")
        .track(200_000, Some(100_002), "tpu0")
        .track(300_000, Some(100_002), "tpu0_queue")
        .track(400_000, Some(100_000), "host-7")
        .track(400_001, Some(400_000), "")
        .track(400_002, Some(400_000), "")
}

fn groups() -> TraceBuilder {
    TraceBuilder::default()
        .track(100, None, "Post-Training Run")
        .track(1, Some(100), "Main")
        .track(2002, Some(100), "Actor")
}

#[test]
fn slices_nest_across_lanes_of_a_thread() {
    let (spans, skipped) = timelines()
        .begin(400_001, 10, "rollout (step=3)")
        .slice(400_002, 20, 30, "environment (step=3, group_id=g, pair_index=1)")
        .slice(400_002, 40, 50, "environment (step=4)")
        // Both end at the same nanosecond, and the outer end is written first.
        .begin(400_002, 60, "data_loading")
        .end(400_001, 70)
        .end(400_002, 70)
        .read(Version::Timelines);
    let rollout = named(&spans, "rl.rollout");
    assert_eq!(
        (rollout.start, rollout.end, rollout.parent.len()),
        (START + 10, START + 70, 0)
    );
    let environment = named(&spans, "rl.environment");
    assert_eq!(environment.parent, rollout.id);
    assert_eq!(environment.attributes["rl.group_id"], "g");
    assert_eq!(environment.attributes["rl.pair_index"], "1");
    let data = named(&spans, "perf.data");
    // The slice has no step and inherits that of its parent.
    assert_eq!((&data.parent, &data.trace), (&rollout.id, &rollout.trace));
    assert_eq!(data.attributes["train.step"], "3");
    let of_step_four = spans.iter().filter(|span| span.attributes["train.step"] == "4");
    assert!(of_step_four.clone().all(|span| span.parent.is_empty()));
    assert_eq!((of_step_four.count(), spans.len()), (1, 4));
    assert!(!skipped.has_losses());
}

#[test]
fn slices_of_a_device_have_no_parent() {
    let (spans, _) = timelines()
        .begin(200_000, 10, "rollout (step=1)")
        .slice(200_000, 20, 30, "reference_inference (step=1)")
        .end(200_000, 40)
        .read(Version::Timelines);
    assert_eq!(spans.len(), 2);
    for span in &spans {
        assert!(span.parent.is_empty());
        assert_eq!(span.attributes["device.id"], "tpu0");
        assert_eq!(span.attributes["perf.clock"], "block_until_ready");
    }
}

#[test]
fn queue_span_has_the_step_of_the_waiting_work() {
    let (spans, _) = timelines()
        .begin(300_000, 10, "queue (name=reference_inference)")
        .slice(400_001, 10, 12, "reference_inference (step=5)")
        .end(300_000, 30)
        .read(Version::Timelines);
    let queue = named(&spans, "rl.queue");
    assert_eq!(queue.attributes["rl.queued"], "rl.reference_inference");
    assert_eq!(queue.attributes["rl.role"], "reference");
    assert_eq!(queue.attributes["train.step"], "5");
    assert_eq!(queue.trace, ids::step_trace(&run(), 5));
}

#[test]
fn slices_without_a_step_join_the_run_trace_and_link_to_the_previous_step() {
    let (spans, _) = timelines()
        .slice(400_001, 5, 6, "data_loading")
        .slice(400_001, 10, 20, "rollout (step=2)")
        .slice(400_001, 30, 40, "weight_sync")
        .read(Version::Timelines);
    let (rollout, sync) = (named(&spans, "rl.rollout"), named(&spans, "rl.weight_sync"));
    assert_eq!(sync.trace, ids::lifecycle_trace(&run()));
    assert_eq!(sync.links, [(rollout.trace.clone(), rollout.id.clone())]);
    assert!(!sync.attributes.contains_key("train.step"));
    let early = named(&spans, "perf.data");
    assert_eq!((&early.trace, early.links.len()), (&sync.trace, 0));
}

#[test]
fn open_slices_end_with_the_trace_and_are_marked_unfinished() {
    let (spans, _) = timelines()
        .begin(400_001, 10, "rollout (step=2)")
        .begin(400_002, 20, "environment (step=2)")
        .slice(200_000, 25, 50, "rollout (step=2)")
        .read(Version::Timelines);
    let environment = named(&spans, "rl.environment");
    assert_eq!(environment.end, START + 50);
    assert_eq!(environment.attributes["perf.unfinished"], "Some(Bool(true))");
    let unfinished = |span: &&Span| span.attributes.contains_key("perf.unfinished");
    assert_eq!((spans.iter().filter(unfinished).count(), spans.len()), (2, 3));
    let on_thread = |span: &&Span| span.attributes["perf.timeline"] == "host-7" && span.name == "rl.rollout";
    assert_eq!(environment.parent, spans.iter().find(on_thread).unwrap().id);

    let (spans, _) = groups()
        .begin(1, 10, "global_step")
        .slice(1, 20, 30, "data_loading")
        .read(Version::Groups);
    let step = named(&spans, "train.step");
    assert_eq!((step.start, step.end), (START, START + 20));
    assert!(step.attributes.contains_key("perf.unfinished"));
    assert_eq!(named(&spans, "perf.data").parent, step.id);
}

#[test]
fn unknown_names_and_tags_are_kept_and_reported_once() {
    let (spans, skipped) = timelines()
        .slice(400_001, 10, 20, "logits (step=2, shard=a)")
        .slice(400_001, 30, 40, "logits (step=3)")
        .read(Version::Timelines);
    let stage = named(&spans, "perf.stage");
    assert_eq!(stage.attributes["perf.stage"], "logits");
    assert_eq!(stage.attributes["perf.tags"], "shard=a");
    let problems: Vec<_> = skipped
        .problems()
        .iter()
        .map(|problem| (problem.reason, problem.message.as_str()))
        .collect();
    assert_eq!(problems, [(SkipReason::UnknownName, "logits")]);
}

#[test]
fn loop_or_role_distinguish_critic_and_actor() {
    let (spans, _) = groups()
        .slice(1, 0, 100, "global_step")
        .slice(1, 10, 90, "critic_training")
        .slice(1, 20, 30, "peft_train_step")
        .read(Version::Groups);
    let train = named(&spans, "rl.critic_train");
    assert_eq!(train.parent, named(&spans, "rl.critic_train_loop").id);
    assert_eq!(train.attributes["rl.role"], "critic");
    let (spans, _) = timelines()
        .slice(400_001, 10, 20, "peft_train (step=0, role=critic)")
        .read(Version::Timelines);
    assert_eq!(named(&spans, "rl.critic_train").attributes["rl.role"], "critic");
}

#[test]
fn steps_without_numbers_are_counted_through_a_file() {
    let mut made = TraceBuilder::default();
    for step in 0..3 {
        made.0.extend(groups().0);
        made = made.slice(1, step * 100, step * 100 + 50, "global_step");
    }
    let (spans, _) = made.read(Version::Groups);
    let steps: Vec<_> = spans
        .iter()
        .map(|span| span.attributes["train.step"].as_str())
        .collect();
    assert_eq!(steps, ["0", "1", "2"]);
    for (number, span) in spans.iter().enumerate() {
        assert_eq!(span.id, ids::step_span(&run(), number as i64));
        assert_eq!(span.trace, ids::step_trace(&run(), number as i64));
    }
}

#[test]
fn slices_with_equal_names_and_starts_have_distinct_ids() {
    let (spans, _) = timelines()
        .begin(400_001, 10, "rollout (step=2)")
        .begin(400_002, 10, "rollout (step=2)")
        .end(400_001, 20)
        .end(400_002, 20)
        .read(Version::Timelines);
    assert_eq!(spans.len(), 2);
    assert_ne!(spans[0].id, spans[1].id);
}

#[test]
fn a_rewritten_file_records_only_new_slices() {
    let first = || timelines().slice(400_001, 10, 20, "rollout (step=0)");
    let again = first().slice(400_001, 30, 40, "rollout (step=1)");
    let count = RefCell::new(0);
    let mut recorder = Recorder::new(run(), |batch| *count.borrow_mut() += batch.items);
    let mut trace = TunixTrace::new(Version::Timelines);
    for (items, expected) in [(first().0, 1), (again.0, 2)] {
        trace.restart();
        for item in items {
            trace.item(item, SourcePosition::default(), &mut recorder);
        }
        trace.end(&mut recorder);
        recorder.flush();
        assert_eq!(*count.borrow(), expected);
    }
}

#[test]
fn without_a_date_a_trace_counts_from_1970_and_reports_it() {
    let made = || timelines().slice(400_001, 10, 20, "rollout (step=2)");
    let (spans, skipped) = made().read_at(Version::Timelines, UnixNanos::UNKNOWN);
    assert_eq!((spans[0].start, spans[0].end), (10, 20));
    assert_eq!(reasons(&skipped), [(SkipReason::NoWallClock, 1)]);
    assert!(skipped.has_losses());
}

#[test]
fn an_end_without_a_begin_is_reported() {
    for (version, made) in [(Version::Timelines, timelines()), (Version::Groups, groups())] {
        let (spans, skipped) = made.end(1, 5).end(77, 6).read(version);
        assert_eq!(spans.len(), 0);
        assert_eq!(reasons(&skipped), [(SkipReason::MalformedRecord, 2)]);
    }
}

#[test]
fn tracks_beyond_the_limit_are_counted_and_left_out() {
    let tracks = super::MAX_TRACKS as u64 + 3;
    let made = (0..tracks).fold(TraceBuilder::default(), |made, uuid| {
        made.track(uuid, None, "Main")
    });
    let made = made.slice(0, 1, 2, "rollout").slice(tracks, 1, 2, "rollout");
    let (spans, skipped) = made.read(Version::Groups);
    assert_eq!(spans.len(), 1);
    let beyond = skipped
        .counts()
        .find(|(reason, _)| *reason == SkipReason::TooManyNames);
    assert_eq!(beyond, Some((SkipReason::TooManyNames, 3 + 2)));
}
