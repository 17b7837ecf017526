//! The keys of a log, resolved once each; and the keys of the current record.

use std::borrow::Cow;

use super::{field::attribute_value, key_path::KeyPaths, key_use::KeyOutcome, label_keys::TIME};
use pulsetrain_mapping::{Field, FieldValue, KeyState, Mapping};
use pulsetrain_record::key_cache::KeyCache;
use pulsetrain_semconv::Metric;

/// The keys of the time if the mapping names none.
const TIMES: [&str; 4] = ["time", "timestamp", "ts", "_timestamp"];

/// The maximum number of cached keys.
pub(super) const MAX_KEYS: usize = 4096;

/// The maximum number of examples of a key.
const MAX_EXAMPLES: usize = 3;

/// The maximum number of values of a key that are compared to find different examples.
const MAX_COMPARED: u64 = 64;

/// The key of the time of a step, or of the time of the data loader.
const ITER_TIME: &str = "iter_time";

/// Separates a key from the kind of its record.
const KIND: &str = "\u{1f}";

/// Returns the text of a field.
fn text_of<'f>(fields: &'f [Field<'_>], key: &str) -> Option<&'f str> {
    fields.iter().find_map(|(name, value)| match value {
        FieldValue::Text(text) if name == key => Some(text.as_ref()),
        _ => None,
    })
}

/// A key of the log.
#[derive(Debug)]
pub(super) struct KeyInfo {
    /// The mapping row and the series.
    pub(super) state: KeyState,
    /// The number of values of the key in records.
    pub(super) count: u64,
    /// The first values of the key in records.
    pub(super) examples: Vec<String>,
    /// Whether all values are kept as `train.custom` from now on although a row matches the key.
    pub(super) is_unmapped: bool,
    /// How many of its values fit the row.
    pub(super) fit: RowFit,
    /// Whether its ratios are in percent, as a number above 1 shows.
    pub(super) is_percent: bool,
    /// The step and the value of its last point.
    last: Option<(i64, f64)>,
    /// The outcome of its values.
    pub(super) outcome: KeyOutcome,
    /// Whether values of the key can be attributes of other values.
    pub(super) is_attribute: bool,
    /// Whether texts of the key are the kinds of records.
    pub(super) is_kind: bool,
    /// Whether the key is the name of its metric, as `loss` is of `train.loss`, or has a row of the user.
    pub(super) is_named: bool,
    /// Whether the key is `time`, without words that the mapping ignores.
    pub(super) is_time: bool,
    /// Whether the key is `iter_time`.
    pub(super) is_iter_time: bool,
    /// The rank of the key among those that can be the time; `None` for other keys.
    time: Option<usize>,
    /// The rank of the key among those that can be the step; `None` for other keys.
    step: Option<usize>,
}

/// How well the values of a key fit its row. A key is judged by its usual value: one line of two writers, or of a script that
/// prints its own source, does not change the lines after it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowFit {
    pub(super) fits: u64,
    pub(super) misfits: u64,
}

/// The fits before a misfit that make it an exception.
const FITS_BEFORE_EXCEPTION: u64 = 8;

impl RowFit {
    /// Returns whether more values fit than not.
    pub(super) const fn is_usual(self) -> bool {
        self.fits > self.misfits
    }

    /// Returns whether enough values fit that another one is an exception.
    pub(super) const fn is_exception(self) -> bool {
        self.fits >= FITS_BEFORE_EXCEPTION && self.misfits * FITS_BEFORE_EXCEPTION <= self.fits
    }
}

/// The keys of a log and of its current record.
#[derive(Debug, Default)]
pub(super) struct RecordKeys {
    known: KeyCache<KeyInfo>,
    paths: KeyPaths,
    /// Whether the cache lacks keys of the log.
    is_cleared: bool,
    /// For each field of the record, the index of its key in `known`.
    indices: Vec<usize>,
    /// The fields of the record that can be the time, by rank.
    times: [Option<usize>; TIMES.len()],
    /// The fields whose keys can be the step, with their rank; and those whose value can be one.
    step_keys: Vec<(usize, usize)>,
    steps: Vec<Option<usize>>,
}

impl RecordKeys {
    /// Looks up the keys of a record's fields.
    pub(super) fn look_up(&mut self, fields: &[Field<'_>], mapping: &Mapping) {
        self.find(fields, mapping);
        self.steps.clear();
        self.steps.resize(mapping.step_ranks(), None);
        for (number, rank) in &self.step_keys {
            if self.steps[*rank].is_none() && fields[*number].1.integer().is_some() {
                self.steps[*rank] = Some(*number);
            }
        }
    }

    fn find(&mut self, fields: &[Field<'_>], mapping: &Mapping) {
        if self.known.len() >= MAX_KEYS {
            self.known.clear();
            self.is_cleared = true;
        }
        self.indices.clear();
        self.step_keys.clear();
        self.times = [None; TIMES.len()];
        let kind = mapping.kind().and_then(|kind| text_of(fields, kind));
        for (number, (key, _)) in fields.iter().enumerate() {
            let name = match kind {
                Some(kind) => Cow::Owned([key, KIND, kind].concat()),
                None => Cow::Borrowed(key.as_ref()),
            };
            let index = match self.known.index_of(&name) {
                Some(index) => index,
                None => {
                    let tail = mapping
                        .is_loose()
                        .then(|| self.paths.tail(key, fields, mapping))
                        .flatten();
                    let mut info = KeyInfo::find(kind, key, mapping);
                    if let Some(tail) = tail {
                        info.state = KeyState::new(mapping.resolve(kind, &tail));
                        info.step = mapping.step_rank(&tail);
                    }
                    self.known.add(&name, info)
                }
            };
            self.indices.push(index);
            let KeyInfo { time, step, .. } = *self.known.at(index);
            if let Some(rank) = time {
                self.times[rank].get_or_insert(number);
            }
            self.step_keys.extend(step.map(|rank| (number, rank)));
        }
    }

    /// Returns whether a field is a step or its key has a row.
    pub(super) fn are_of_record(&mut self) -> bool {
        let known = &mut self.known;
        self.steps.iter().any(Option::is_some)
            || self
                .indices
                .iter()
                .any(|index| known.at(*index).state.resolved.is_some())
    }

    /// Returns whether one of the fields of the record, `count` in number, has a metric.
    pub(super) fn has_metric(&mut self, count: usize, metric: &Metric) -> bool {
        (0..count).any(|field| {
            let found = self.info_mut(field).state.metric();
            found.is_some_and(|found| found.ordinal == metric.ordinal)
        })
    }

    /// Returns whether a value of the record has this value of a key as an attribute.
    pub(super) fn is_attribute_of_record(&mut self, key: &str, value: &FieldValue<'_>) -> bool {
        let known = &mut self.known;
        self.indices.iter().any(|index| {
            let resolved = known.at(*index).state.resolved.as_ref();
            let mut sources = resolved
                .into_iter()
                .flat_map(|found| &found.mapping.attributes_from);
            sources.any(|(attribute, source)| source == key && attribute_value(attribute, value).is_some())
        })
    }

    /// Returns the metrics of those fields of the record, `count` in number, whose key is the name of their metric.
    pub(super) fn named_metrics(&mut self, count: usize) -> Vec<u16> {
        let named = (0..count).filter_map(|field| {
            let info = self.info_mut(field);
            info.state.metric().filter(|_| info.is_named)
        });
        named.map(|metric| metric.ordinal).collect()
    }

    /// Returns the fields that can be the time, by rank.
    pub(super) fn times(&self) -> impl Iterator<Item = usize> + '_ {
        self.times.iter().flatten().copied()
    }

    /// Returns the field of the step: of a key that occurs twice, the first one.
    pub(super) fn step(&self) -> Option<usize> {
        self.steps().next().map(|(_, field)| field)
    }

    /// Returns the ranks and the fields that can be the step, by rank: of a key that occurs twice, the first field.
    pub(super) fn steps(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.steps.iter().enumerate().filter_map(|(rank, found)| {
            let found = self.indices[(*found)?];
            let field = self.indices.iter().position(|index| *index == found)?;
            Some((rank, field))
        })
    }

    /// Returns whether two fields have the same key, if there is a second one.
    pub(super) fn are_same(&self, field: usize, other: Option<usize>) -> bool {
        other.is_some_and(|other| self.indices[field] == self.indices[other])
    }

    /// Returns whether the points of two fields have the same attributes. Attributes from other fields are not compared.
    pub(super) fn have_same_attributes(&mut self, field: usize, other: usize) -> bool {
        let [attributes, others] = [field, other].map(|field| {
            let resolved = self.info_mut(field).state.resolved.as_ref()?;
            let captured = resolved.captured.iter();
            Some(
                captured
                    .chain(&resolved.mapping.attributes)
                    .cloned()
                    .collect::<Vec<_>>(),
            )
        });
        attributes == others
    }

    /// Returns whether keys of the log are no longer known, since there were more than the maximum.
    pub(super) fn is_cleared(&self) -> bool {
        self.is_cleared
    }

    /// Iterates over all keys that were looked up, with the kinds of their records.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, Option<&str>, &mut KeyInfo)> {
        let known = self.known.iter_mut();
        known.map(|(name, info)| match name.split_once(KIND) {
            Some((key, kind)) => (key, Some(kind), info),
            None => (name, None, info),
        })
    }

    /// Returns the key of a field.
    pub(super) fn info_mut(&mut self, field: usize) -> &mut KeyInfo {
        self.known.at(self.indices[field])
    }
}

impl KeyInfo {
    /// Returns the index of the key among those that can be the step.
    pub(super) fn step(&self) -> Option<usize> {
        self.step
    }

    /// Records the point of a step. Returns whether the last point is of the same step and has another value.
    pub(super) fn repeats(&mut self, step: i64, value: f64) -> bool {
        let last = self.last.replace((step, value));
        last.is_some_and(|(last_step, last)| last_step == step && last.to_bits() != value.to_bits())
    }

    /// Counts the values of a record and keeps the first ones.
    pub(super) fn record(&mut self, value: &FieldValue<'_>) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES && self.count <= MAX_COMPARED {
            let example = match value {
                FieldValue::Number(number) => number.to_string(),
                FieldValue::Text(text) => text.to_string(),
            };
            if !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }

    fn find(kind: Option<&str>, key: &str, mapping: &Mapping) -> Self {
        let spelling = mapping.spelling(key);
        let state = KeyState::new(mapping.resolve(kind, key));
        let metric = state.metric();
        let name = metric.and_then(|metric| metric.name.rsplit('.').next());
        let is_preferred = metric.and_then(|metric| mapping.is_preferred(key, metric));
        Self {
            is_named: is_preferred.unwrap_or_else(|| name == Some(spelling.as_ref())),
            state,
            count: 0,
            examples: Vec::new(),
            is_unmapped: false,
            fit: RowFit::default(),
            is_percent: false,
            last: None,
            outcome: KeyOutcome::default(),
            is_attribute: mapping.is_attribute(key),
            is_kind: mapping.kind() == Some(key),
            is_iter_time: spelling == ITER_TIME,
            is_time: spelling == TIME || mapping.without_prefixes(&spelling).any(|key| key == TIME),
            time: match mapping.time() {
                Some(time) => (time == spelling).then_some(0),
                None => TIMES.iter().position(|usual| *usual == spelling),
            },
            step: mapping.step_rank(key),
        }
    }
}
