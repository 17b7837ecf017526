//! A mapping: the logs that it is for, the parsing of their lines, and the rows for their keys.

use std::{borrow::Cow, collections::BTreeMap, ptr, sync::Arc};

use pulsetrain_semconv::Metric;
use regex::Regex;

use crate::{
    CoverageRow, FieldMapping, FieldTable, MappingError, MappingPart, ResolvedMapping, TimeForm,
    key_pattern::regex, scalar_section::ScalarSection, words::Words,
};

/// The keys of the step if the mapping names none.
const STEPS: [&str; 4] = ["step", "global_step", "iteration", "iter"];

/// The mapping of a log's keys. The default has the names of metrics, and the usual keys of step and time.
#[derive(Clone, Debug, Default)]
pub struct Mapping {
    /// The format of the log's fields.
    pub(crate) format: Option<MappedFormat>,
    /// The trainer, which is `service.name` unless the user sets another.
    pub(crate) framework: Option<String>,
    /// The trainer's name in messages.
    pub(crate) title: Option<String>,
    pub(crate) detect: Vec<Regex>,
    pub(crate) is_loose: bool,
    pub(crate) ignored: Vec<String>,
    pub(crate) words: Words,
    pub(crate) steps: Vec<String>,
    pub(crate) time: Option<String>,
    pub(crate) time_form: TimeForm,
    pub(crate) lines: Vec<Regex>,
    pub(crate) pairs: PairDelimiters,
    pub(crate) kind: Option<String>,
    pub(crate) rank: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) table: FieldTable,
    pub(crate) records: BTreeMap<String, FieldTable>,
    pub(crate) scalars: ScalarSection,
    pub(crate) drops_unknown: bool,
    /// The format that the mapping of a user extends, and that mapping by itself.
    pub(crate) extension: Option<Box<Extension>>,
}

/// The mapping of a user that extends a format.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) format: String,
    pub(crate) own: Arc<Mapping>,
}

/// The format of a log's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MappedFormat {
    /// An object a line, of JSON or as Python prints it.
    Json,
    /// Pairs of a key and a value.
    KeyValue,
    /// Numbers with their labels, in any printed line.
    Text,
    /// A table with a header.
    Csv,
}

/// The delimiters of the pairs of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairDelimiters {
    /// The delimiter between two pairs. By default: a space, a comma, a semicolon, a bar or a bracket.
    pub pair: Option<String>,
    /// The delimiter between a key and its value. By default: an equals sign or, in a line without one, a colon.
    pub key: Option<String>,
}

impl MappedFormat {
    /// Returns the name of the format in the table of formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::KeyValue => "keyvalue",
            Self::Text => "text",
            Self::Csv => "csv",
        }
    }
}

impl Mapping {
    /// Returns the format of the log's fields, if the mapping names it, has a pattern of lines or sets delimiters.
    pub fn format(&self) -> Option<MappedFormat> {
        let has_pairs = !self.lines.is_empty() || self.pairs != PairDelimiters::default();
        self.format.or(has_pairs.then_some(MappedFormat::KeyValue))
    }

    /// Returns the format that the mapping names explicitly.
    pub fn named_format(&self) -> Option<MappedFormat> {
        self.format
    }

    /// Returns the name of the format that reads the log, if the mapping has one.
    pub fn format_name(&self) -> Option<&str> {
        self.extended().or_else(|| Some(self.format()?.name()))
    }

    /// Returns the name of the format that the mapping extends.
    pub fn extended(&self) -> Option<&str> {
        Some(&self.extension.as_ref()?.format)
    }

    /// Returns the mapping of the user without the rows of the format that it extends. Its patterns are for the lines that the
    /// format leaves.
    pub fn own(&self) -> Option<&Arc<Self>> {
        Some(&self.extension.as_ref()?.own)
    }

    /// Returns whether a key is the one of its metric: that of a row of the user, or `None` if the user has no row for the metric.
    pub fn is_preferred(&self, key: &str, metric: &Metric) -> Option<bool> {
        let own = self.own()?;
        let mut metrics = own.table.rows().filter_map(|row| row.target.metric());
        let has_row = metrics.any(|mapped| mapped.ordinal == metric.ordinal);
        has_row.then(|| own.table.resolve(&own.spelling(key)).is_some())
    }

    /// Returns the trainer that writes the log, if the mapping has its name.
    pub fn framework(&self) -> Option<&str> {
        self.framework.as_deref()
    }

    /// Returns the trainer's name for messages.
    pub fn title(&self) -> &str {
        self.title.as_deref().or(self.framework()).unwrap_or("a trainer")
    }

    /// Returns whether the mapping has patterns and each of them matches a line of `text`.
    pub fn detects(&self, text: &str) -> bool {
        !self.detect.is_empty() && self.detect.iter().all(|pattern| pattern.is_match(text))
    }

    /// Returns whether keys are compared case-insensitively, with every run of non-alphanumeric characters as one `_`.
    pub fn is_loose(&self) -> bool {
        self.is_loose
    }

    /// Returns whether keys without a row are dropped instead of kept as `train.custom`.
    pub fn drops_unknown(&self) -> bool {
        self.drops_unknown
    }

    /// Returns the keys that can be the step; the first one in a record counts. Empty for the default keys.
    pub fn steps(&self) -> &[String] {
        &self.steps
    }

    /// Returns the key of a record's time, if the mapping names one.
    pub fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Returns the format of the times.
    pub fn time_form(&self) -> &TimeForm {
        &self.time_form
    }

    /// Returns the patterns of the lines that are records; the first one that matches a line counts. Named groups are fields,
    /// and the text of the group `record` is parsed instead of the line.
    pub fn lines(&self) -> &[Regex] {
        &self.lines
    }

    /// Returns the delimiters of the pairs of a line.
    pub fn pairs(&self) -> &PairDelimiters {
        &self.pairs
    }

    /// Returns the key whose value is the kind of a record, if there are several kinds.
    pub fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    /// Returns the key of the rank of a record, if the mapping names one.
    pub fn rank(&self) -> Option<&str> {
        self.rank.as_deref()
    }

    /// Returns the key whose text is the role of a record, if the mapping names one.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Returns the rows of all records.
    pub fn table(&self) -> &FieldTable {
        &self.table
    }

    /// Returns the rows of one kind of record.
    pub fn records(&self, kind: &str) -> Option<&FieldTable> {
        self.records.get(kind)
    }

    /// Returns the mapping of the trainer's tags.
    pub fn scalars(&self) -> &ScalarSection {
        &self.scalars
    }

    /// Returns a key in the spelling of the rows.
    pub fn spelling<'k>(&self, key: &'k str) -> Cow<'k, str> {
        if self.is_loose {
            Cow::Owned(loose(key))
        } else {
            Cow::Borrowed(key)
        }
    }

    /// Returns the words of other languages that its keys are printed in.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Returns the index of a key among those that can be the step, or `None` if it cannot.
    pub fn step_rank(&self, key: &str) -> Option<usize> {
        let spelling = self.spelling(key);
        let rank = |key: &str| match self.steps() {
            [] => STEPS.iter().position(|step| *step == key),
            steps => steps.iter().position(|step| *step == key),
        };
        rank(&spelling).or_else(|| self.without_prefixes(&spelling).find_map(rank))
    }

    /// Returns the number of keys that can be the step.
    pub fn step_ranks(&self) -> usize {
        self.steps.len().max(STEPS.len())
    }

    /// Returns whether values of a key are attributes of the points of another key.
    pub fn is_attribute(&self, key: &str) -> bool {
        let tables = std::iter::once(&self.table).chain(self.records.values());
        let mut sources = tables
            .flat_map(FieldTable::rows)
            .flat_map(|row| &row.attributes_from);
        sources.any(|(_, source)| source == key)
    }

    /// Returns the parts of the mapping that none of a log's keys uses; the keys have the kinds of their records.
    pub fn unused(&self, keys: &[(Option<&str>, &str)]) -> Vec<String> {
        if let Some(own) = self.own() {
            return own.unused(keys);
        }
        let spellings: Vec<Cow<'_, str>> = keys.iter().map(|(_, key)| self.spelling(key)).collect();
        let is_key = |name: &String| spellings.iter().any(|key| key == name);
        let is_exact_key = |name: &String| keys.iter().any(|(_, key)| key == name);
        let is_step = |name: &String| {
            let mut keys = spellings.iter();
            keys.any(|key| key == name || self.without_prefixes(key).any(|rest| rest == name))
        };
        let used = keys.iter().filter_map(|(kind, key)| self.resolve(*kind, key));
        let used: Vec<ResolvedMapping> = used.collect();
        let of_kinds = self
            .records
            .iter()
            .map(|(kind, table)| (format!("{kind}: "), table));
        let tables = std::iter::once((String::new(), &self.table)).chain(of_kinds);
        let (mut sources, mut unused_rows) = (Vec::new(), Vec::new());
        for (kind, table) in tables {
            for row in table.rows() {
                sources.extend(row.attributes_from.iter().map(|(_, source)| source));
                if !used.iter().any(|used| ptr::eq(&*used.mapping, row)) {
                    unused_rows.push(format!("{kind}{}", row.keys.text()));
                }
            }
        }
        let has_step = self.steps.is_empty() || self.steps.iter().any(is_step);
        let step = (!has_step).then(|| format!("step: {}", self.steps.join(", ")));
        let time = self.time.iter().filter(|key| !is_key(key));
        let kind = self.kind.iter().filter(|key| !is_exact_key(key));
        let sources = sources.into_iter().filter(|key| !is_exact_key(key));
        step.into_iter()
            .chain(time.map(|key| format!("time: {key}")))
            .chain(kind.map(|key| format!("kind: {key}")))
            .chain(sources.map(|key| format!("attributes_from: {key}")))
            .chain(unused_rows)
            .collect()
    }

    /// Returns the row of `key` in a record of `kind`, or `None` if no row matches and the key is not the name of a metric.
    pub fn resolve(&self, kind: Option<&str>, key: &str) -> Option<ResolvedMapping> {
        let of_kind = kind.and_then(|kind| self.records.get(kind));
        let row_of = |key: &str| {
            let of_kind = of_kind.and_then(|table| table.resolve(key));
            of_kind.or_else(|| self.table.resolve(key))
        };
        let spelling = self.spelling(key);
        let by_name = || FieldMapping::by_name(key).and_then(|row| Arc::new(row).resolve(key));
        row_of(&spelling)
            .or_else(by_name)
            .or_else(|| self.without_prefixes(&spelling).find_map(row_of))
    }

    /// Returns the rows of `key` in records of any kind and in tags.
    pub fn resolve_anywhere(&self, key: &str) -> impl Iterator<Item = ResolvedMapping> {
        let tables = self.records.values().chain([self.scalars.table()]);
        let rows: Vec<_> = tables.filter_map(|table| table.resolve(key)).collect();
        self.resolve(None, key).into_iter().chain(rows)
    }

    /// Iterates over a key without the ignored words at its beginning: without one, without two, ...
    pub fn without_prefixes<'k>(&self, spelling: &'k str) -> impl Iterator<Item = &'k str> {
        let without_one = |key: &'k str| {
            let mut prefixes = self.ignored.iter();
            prefixes.find_map(|word| {
                let rest = key.strip_prefix(word.as_str())?;
                rest.strip_prefix(['_', '/', '.', ' '])
            })
        };
        std::iter::successors(without_one(spelling), move |key| without_one(key))
    }

    /// Describes the mapping of every key of records, for the documentation.
    pub fn coverage(&self) -> Vec<CoverageRow> {
        let steps = self
            .steps
            .iter()
            .map(|key| CoverageRow::step(key.clone(), "record"));
        steps.chain(self.table.coverage()).collect()
    }

    /// Adds a pattern that must match a line at the beginning of a log to detect it.
    pub(crate) fn add_detect(&mut self, pattern: &str) -> Result<(), MappingError> {
        let multi_line = format!("(?m){pattern}");
        self.detect
            .push(regex(pattern, &multi_line, MappingPart::Detect)?);
        Ok(())
    }

    /// Adds a pattern of the lines that are records.
    pub(crate) fn add_line(&mut self, pattern: &str) -> Result<(), MappingError> {
        self.lines.push(regex(pattern, pattern, MappingPart::Line)?);
        Ok(())
    }

    /// Sets the delimiters of the pairs of a line.
    pub(crate) fn set_pairs(&mut self, pair: Option<&str>, key: Option<&str>) -> Result<(), MappingError> {
        if [pair, key].contains(&Some("")) {
            let message = "the separator is empty: give at least one character, or remove the key";
            return Err(MappingError::new(MappingPart::Pairs, message));
        }
        let other = self.format.filter(|format| *format != MappedFormat::KeyValue);
        if let Some(other) = other.filter(|_| pair.is_some() || key.is_some()) {
            let message = format!(
                "the format {} has no delimiters: remove the key, or set format: keyvalue",
                other.name()
            );
            return Err(MappingError::new(MappingPart::Pairs, message));
        }
        self.pairs = PairDelimiters {
            pair: pair.map(str::to_owned),
            key: key.map(str::to_owned),
        };
        Ok(())
    }
}

/// Returns a key in lower case, with every run of non-alphanumeric characters as one `_`.
pub(crate) fn loose(key: &str) -> String {
    let words = key.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("_")
}
