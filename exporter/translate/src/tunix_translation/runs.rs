//! The state of each run of Tunix: its last steps and values, and the recorder under the names of the registry.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use pulsetrain_mapping::tunix_otel::{OtelPoint, TunixOtel};
use pulsetrain_otlp::{
    view::{AnyValue, Message, Resource},
    write::Encoded,
};
use pulsetrain_pipeline::{Batch, ThrottledLog};
use pulsetrain_record::{Recorder, Run, SkipReason, SourcePosition, ids};
use pulsetrain_semconv::attribute;
use xxhash_rust::xxh3::xxh3_128;

use super::split::split;

/// The limit for runs with state. A new run beyond it evicts the run that was inactive longest.
const MAX_RUNS: usize = 256;

type Recorded = Rc<RefCell<Vec<Encoded>>>;

/// The runs by the hash of their resource: equal resources are the same run.
pub(super) struct Runs {
    runs: BTreeMap<u128, TunixRun>,
    recorded: Recorded,
    /// The number of messages, which is the clock for the inactivity of runs.
    messages: u64,
    notices: ThrottledLog,
}

/// The state of a run.
struct TunixRun {
    tunix: TunixOtel,
    recorder: Recorder<'static>,
    last_message: u64,
    /// The number of reported problems.
    reported: usize,
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

    /// Returns the translated batches and the rest of a batch.
    pub(super) fn translate(&mut self, batch: &Batch) -> Vec<Batch> {
        self.messages += 1;
        let outcome = split(batch.bytes(), |resource, points| self.record(resource, points));
        let recorded = self.recorded.take();
        let Ok((left, taken)) = outcome else {
            // The source has checked the bytes. If they are invalid nevertheless, they pass unchanged.
            return vec![batch.clone()];
        };
        if taken == 0 {
            return vec![batch.clone()];
        }
        let left_items = batch.items().saturating_sub(taken);
        let left = (left_items > 0).then(|| batch.with_contents(left_items, left));
        let translated = recorded
            .into_iter()
            .map(|encoded| batch.derived(encoded.signal, encoded.items, encoded.bytes));
        left.into_iter().chain(translated).collect()
    }

    fn record(&mut self, resource: &[u8], points: &[OtelPoint<'_>]) {
        let key = xxh3_128(resource);
        if !self.runs.contains_key(&key) {
            self.evict_oldest();
            self.runs.insert(key, TunixRun::new(resource, &self.recorded));
        }
        let Some(run) = self.runs.get_mut(&key) else {
            return;
        };
        run.last_message = self.messages;
        run.tunix
            .record(points, SourcePosition::default(), &mut run.recorder);
        run.recorder.end_of_record();
        run.recorder.flush();
        run.report(&self.notices);
    }

    fn evict_oldest(&mut self) {
        if self.runs.len() < MAX_RUNS {
            return;
        }
        let oldest = self.runs.iter().min_by_key(|(_, run)| run.last_message);
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.runs.remove(&oldest);
        }
    }
}

impl TunixRun {
    /// Creates the state of a run from its resource. A missing run id is derived from the resource.
    fn new(resource: &[u8], recorded: &Recorded) -> Self {
        let attributes = attributes_of(resource);
        let id = attributes.get(attribute::TRAIN_RUN_ID.name).cloned().flatten();
        let run = Run {
            id: id.unwrap_or_else(|| ids::run_id("tunix-otel", resource)),
            framework: "tunix".to_owned(),
            ..Run::default()
        };
        let envelope = run.envelope_of(resource, |name| attributes.contains_key(name));
        let listener = Rc::clone(recorded);
        Self {
            tunix: TunixOtel::default(),
            recorder: Recorder::in_envelope(run, envelope, move |encoded| {
                listener.borrow_mut().push(encoded);
            }),
            last_message: 0,
            reported: 0,
        }
    }

    /// Reports the values that were skipped since the last report.
    fn report(&mut self, notices: &ThrottledLog) {
        let skipped = self.recorder.parse_report();
        for problem in skipped.problems().iter().skip(self.reported) {
            notices.report(&problem.message, &problem.message);
        }
        self.reported = skipped.problems().len();
        for (reason, values) in skipped
            .counts()
            .filter(|(reason, _)| is_loss_without_problem(*reason))
        {
            let message = format!("values of Tunix are lost ({}): {values} so far", reason.as_str());
            notices.report(reason.as_str(), &message);
        }
    }
}

/// Returns whether values that are skipped for this reason have no entry among the problems.
fn is_loss_without_problem(reason: SkipReason) -> bool {
    matches!(reason, SkipReason::TooManyCustomNames | SkipReason::NotSummable)
}

/// Returns the attributes of a resource, with their values if these are text. For a malformed resource the map is empty.
fn attributes_of(resource: &[u8]) -> BTreeMap<String, Option<String>> {
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
