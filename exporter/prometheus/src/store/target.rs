//! Targets: the resources that send points. The series of a stale target end.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use pulsetrain_otlp::{WireError, view::Resource};
use pulsetrain_semconv::attribute;

use super::{
    super::{
        escape::NAME_LABEL,
        ingest::MAX_LABEL_BYTES,
        labels::{self, Labeller, Labels},
        points::PointError,
    },
    Rejection,
    budget::{Budget, Charge},
};

/// The size of a target without its texts.
const TARGET_BYTES: usize = 512;

const NAMESPACE: &str = "service.namespace";
const NAME: &str = "service.name";
const INSTANCE: &str = "service.instance.id";

/// A resource, as its series refer to it.
#[derive(Debug)]
pub(crate) struct ScrapeTarget {
    /// The labels of every series of the target, sorted by name: `job`, `instance` and those of the
    /// allow-list.
    pub(crate) labels: Vec<(Arc<str>, Box<str>)>,
    /// `job` and `instance` as label text, or empty.
    pub(crate) identity: Box<str>,
    /// The labels of its `target_info`, or empty.
    pub(crate) info: Box<str>,
    /// The attempt of the run. A later attempt of the same identity ends the series of this one.
    attempt: Option<u64>,
    /// The time of its last telemetry, in milliseconds since the store's creation.
    seen_millis: AtomicU64,
    ended: AtomicBool,
    _charge: Charge,
}

/// The hash of a resource's attributes, whose text may be long and of high cardinality.
type AttributesHash = [u64; 2];

/// The active targets.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    by_attributes: HashMap<AttributesHash, Arc<ScrapeTarget>>,
    hashers: [RandomState; 2],
    /// Whether targets with series were replaced by a later attempt since the last sweep.
    superseded: bool,
}

impl ScrapeTarget {
    /// Returns whether the target is stale, which ends its series.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub(crate) fn seen_millis(&self) -> u64 {
        self.seen_millis.load(Ordering::Relaxed)
    }
}

impl Targets {
    /// Returns the target of a resource, and updates its time.
    pub(crate) fn enter(
        &mut self,
        resource: &Resource<'_>,
        promoted: &[String],
        labeller: &mut Labeller,
        now_millis: u64,
        budget: &Arc<Budget>,
    ) -> Result<Arc<ScrapeTarget>, PointError> {
        let mut key = String::new();
        let all = labeller.labels(&resource.attributes, |_| true)?;
        labels::write(borrowed(&all), &mut key);
        let key = self.hashers.each_ref().map(|hasher| hasher.hash_one(&key));
        if let Some(target) = self.by_attributes.get(&key) {
            target.seen_millis.store(now_millis, Ordering::Relaxed);
            return Ok(Arc::clone(target));
        }
        let target = Arc::new(ScrapeTarget::new(
            resource, promoted, labeller, now_millis, budget,
        )?);
        self.end_earlier_attempts(&target);
        self.by_attributes.insert(key, Arc::clone(&target));
        Ok(target)
    }

    /// Ends the earlier attempts of `target`, because a killed attempt cannot end its own series.
    fn end_earlier_attempts(&mut self, target: &ScrapeTarget) {
        if target.attempt.is_none() || target.identity.is_empty() {
            return;
        }
        let is_earlier =
            |other: &ScrapeTarget| other.identity == target.identity && other.attempt < target.attempt;
        self.by_attributes.retain(|_, other| {
            let stays = !is_earlier(other);
            if !stays {
                other.ended.store(true, Ordering::Relaxed);
                self.superseded = true;
            }
            stays
        });
    }

    /// Removes the targets that have been silent for longer than `stale_after`. Returns whether one had
    /// series.
    pub(crate) fn sweep(&mut self, now_millis: u64, stale_after: Duration) -> bool {
        let limit = u64::try_from(stale_after.as_millis()).unwrap_or(u64::MAX);
        let mut had_series = std::mem::take(&mut self.superseded);
        self.by_attributes.retain(|_, target| {
            let silent = now_millis.saturating_sub(target.seen_millis());
            let stays = silent <= limit;
            if !stays {
                target.ended.store(true, Ordering::Relaxed);
                had_series |= Arc::strong_count(target) > 1;
            }
            stays
        });
        had_series
    }

    /// Returns the `target_info` labels of the targets with series: one per `job` and `instance`, from the
    /// latest resource.
    pub(crate) fn infos(&self) -> Vec<Arc<ScrapeTarget>> {
        let mut latest: HashMap<&str, &Arc<ScrapeTarget>> = HashMap::new();
        // One owner is this table; every other one is a series.
        let alive = |target: &&Arc<ScrapeTarget>| !target.info.is_empty() && Arc::strong_count(target) > 1;
        for target in self.by_attributes.values().filter(alive) {
            let entry = latest.entry(&*target.identity).or_insert(target);
            if (target.seen_millis(), &target.info) > (entry.seen_millis(), &entry.info) {
                *entry = target;
            }
        }
        let mut infos: Vec<_> = latest.into_values().cloned().collect();
        infos.sort_by(|a, b| a.info.cmp(&b.info));
        infos
    }
}

impl ScrapeTarget {
    fn new(
        resource: &Resource<'_>,
        promoted: &[String],
        labeller: &mut Labeller,
        now_millis: u64,
        budget: &Arc<Budget>,
    ) -> Result<Self, PointError> {
        let attributes = &resource.attributes;
        let identity = identity(attributes, labeller)?;
        let mut labels = labeller.labels(attributes, |key| promoted.iter().any(|wanted| wanted == key))?;
        let mut info = labeller.labels(attributes, |key| ![NAMESPACE, NAME, INSTANCE].contains(&key))?;
        info.retain(|(name, _)| **name != *NAME_LABEL);
        let attempt = labeller
            .labels(attributes, |key| key == attribute::TRAIN_ATTEMPT.name)?
            .pop()
            .and_then(|(_, value)| value.parse().ok());
        let has_info = !info.is_empty() && !identity.is_empty();
        override_with(&mut labels, &identity);
        keep_what_fits(&mut info);
        override_with(&mut info, &identity);
        let own: usize = labels.iter().map(|label| label_bytes(label)).sum();
        let identity = text(&identity);
        if own + identity.len() > MAX_LABEL_BYTES {
            return Err(PointError::Rejected(Rejection::LabelsTooLong));
        }
        let info = if has_info { text(&info) } else { "".into() };
        let bytes = TARGET_BYTES + own + identity.len() + info.len();
        let charge = budget.charge(bytes, false).map_err(PointError::Rejected)?;
        Ok(Self {
            labels: labels
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
            identity,
            info,
            _charge: charge,
            attempt,
            seen_millis: AtomicU64::new(now_millis),
            ended: AtomicBool::new(false),
        })
    }
}

/// Returns the identity. `job` is the service's name with its namespace, and `instance` its instance id.
fn identity<'a>(
    attributes: &pulsetrain_otlp::view::Repeated<'a, pulsetrain_otlp::view::KeyValue<'a>>,
    labeller: &mut Labeller,
) -> Result<Labels<'a>, WireError> {
    let mut value = |key: &str| -> Result<Option<_>, WireError> {
        Ok(labeller
            .labels(attributes, |other| other == key)?
            .pop()
            .map(|(_, value)| value))
    };
    let job = value(NAME)?.map(|name| match value(NAMESPACE) {
        Ok(Some(namespace)) => format!("{namespace}/{name}").into(),
        _ => name,
    });
    let instance = value(INSTANCE)?.map(|instance| ("instance".into(), instance));
    Ok(instance
        .into_iter()
        .chain(job.map(|job| ("job".into(), job)))
        .collect())
}

/// Removes the labels beyond 16 KiB, because `target_info` is on every page.
fn keep_what_fits(labels: &mut Labels<'_>) {
    let mut left = MAX_LABEL_BYTES;
    labels.retain(|label| {
        let rest = left.checked_sub(label_bytes(label));
        left = rest.unwrap_or(left);
        rest.is_some()
    });
}

/// Returns the length of a label with its delimiters.
fn label_bytes((name, value): &(Arc<str>, Cow<'_, str>)) -> usize {
    name.len() + value.len() + r#"="","#.len()
}

/// Replaces labels by those of the identity.
fn override_with<'a>(labels: &mut Labels<'a>, identity: &Labels<'a>) {
    labels.retain(|(name, _)| identity.iter().all(|(other, _)| other != name));
    labels.extend(identity.iter().cloned());
    labels.sort_by(|(a, _), (b, _)| a.cmp(b));
}

fn borrowed<'a>(labels: &'a Labels<'_>) -> impl Iterator<Item = (&'a str, &'a str)> {
    labels.iter().map(|(name, value)| (&**name, &**value))
}

fn text(labels: &Labels<'_>) -> Box<str> {
    let mut text = String::new();
    labels::write(borrowed(labels), &mut text);
    text.into()
}
