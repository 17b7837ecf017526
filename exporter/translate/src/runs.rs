//! The runs of Tunix that send: what each has said so far, and the recorder that says it under our names.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use pulsetrain_mapping::tunix_otel::{OtelPoint, TunixOtel};
use pulsetrain_otlp::{
    view::{AnyValue, Message, Resource},
    write::Encoded,
};
use pulsetrain_pipeline::{Batch, ThrottledLog};
use pulsetrain_record::{Place, Recorder, Run, SkipReason, ids};
use pulsetrain_semconv::attribute;
use xxhash_rust::xxh3::xxh3_128;

use crate::split::split;

/// So many runs are told apart; when another one comes, the one that was silent the longest is forgotten.
const MOST_RUNS: usize = 256;

type Recorded = Rc<RefCell<Vec<Encoded>>>;

/// All runs that send.
pub(super) struct Runs {
    runs: BTreeMap<u128, Sender>,
    recorded: Recorded,
    /// Counts the messages, to know who was silent for long.
    messages: u64,
    notices: ThrottledLog,
}

/// One run that sends.
struct Sender {
    tunix: TunixOtel,
    recorder: Recorder<'static>,
    last_message: u64,
    /// How many of its problems were told.
    told: usize,
}

impl Runs {
    pub(super) fn new(notices: ThrottledLog) -> Self {
        Self {
            runs: BTreeMap::new(),
            recorded: Recorded::default(),
            messages: 0,
            notices,
        }
    }

    /// The batch with our names, and the rest of it.
    pub(super) fn renamed(&mut self, batch: &Batch) -> Vec<Batch> {
        self.messages += 1;
        let outcome = split(batch.bytes(), |resource, points| self.take(resource, points));
        let recorded = self.recorded.take();
        let Ok((left, taken)) = outcome else {
            // It was checked at the door, so this cannot be; and if it is, it goes on as it came.
            return vec![batch.clone()];
        };
        if taken == 0 {
            return vec![batch.clone()];
        }
        let left_items = batch.items().saturating_sub(taken);
        let left = (left_items > 0).then(|| batch.with_contents(left_items, left));
        let ours = recorded
            .into_iter()
            .map(|encoded| batch.derived(encoded.signal, encoded.items, encoded.bytes));
        left.into_iter().chain(ours).collect()
    }

    fn take(&mut self, resource: &[u8], points: &[OtelPoint<'_>]) {
        let key = xxh3_128(resource);
        if !self.runs.contains_key(&key) {
            self.forget_one();
            self.runs.insert(key, Sender::new(resource, &self.recorded));
        }
        let Some(sender) = self.runs.get_mut(&key) else {
            return;
        };
        sender.last_message = self.messages;
        sender
            .tunix
            .record(points, Place::default(), &mut sender.recorder);
        sender.recorder.end_of_record();
        sender.recorder.flush();
        sender.tell(&self.notices);
    }

    fn forget_one(&mut self) {
        if self.runs.len() < MOST_RUNS {
            return;
        }
        let oldest = self.runs.iter().min_by_key(|(_, run)| run.last_message);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.runs.remove(&oldest);
        }
    }
}

impl Sender {
    /// A run that says this of itself. What it lacks of a run's identity is derived from what it has.
    fn new(resource: &[u8], recorded: &Recorded) -> Self {
        let said = said(resource);
        let id = said.get(attribute::TRAIN_RUN_ID.name).cloned().flatten();
        let run = Run {
            id: id.unwrap_or_else(|| ids::run_id("tunix-otel", resource)),
            framework: "tunix".to_owned(),
            ..Run::default()
        };
        let envelope = run.envelope_of(resource, |name| said.contains_key(name));
        let listener = Rc::clone(recorded);
        Self {
            tunix: TunixOtel::default(),
            recorder: Recorder::in_envelope(run, envelope, move |encoded| {
                listener.borrow_mut().push(encoded);
            }),
            last_message: 0,
            told: 0,
        }
    }

    /// Says what was skipped that had not been before.
    fn tell(&mut self, notices: &ThrottledLog) {
        let skipped = self.recorder.skipped();
        for problem in skipped.problems().iter().skip(self.told) {
            notices.report(&problem.message, &problem.message);
        }
        self.told = skipped.problems().len();
        for (reason, values) in skipped.counts().filter(|(reason, _)| is_silent_loss(*reason)) {
            let what = format!("values of Tunix are lost ({}): {values} so far", reason.as_str());
            notices.report(reason.as_str(), &what);
        }
    }
}

/// Whether values were lost of which no problem tells.
fn is_silent_loss(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::TooManyCustomNames | SkipReason::NotSummable)
}

/// The attributes of a resource, with their values where these are text. What is broken has none.
fn said(resource: &[u8]) -> BTreeMap<String, Option<String>> {
    let Ok(resource) = Resource::decode(resource) else {
        return BTreeMap::new();
    };
    let attributes = resource.attributes.iter().map_while(Result::ok);
    attributes
        .map(|pair| {
            let text = match pair.value {
                Some(AnyValue::String(text)) => Some(text.to_str_lossy().into_owned()),
                _ => None,
            };
            (pair.key.to_str_lossy().into_owned(), text)
        })
        .collect()
}
