//! A mapping in YAML: files of `--mapping`, the `mapping` of a configuration, and those of known trainers.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_saphyr::{Options, PropertySyntax, Spanned};

use crate::{
    FieldMapping, FieldTable, MappedFormat, Mapping, MappingError, MappingPart, TimeForm,
    key_pattern::KeyPattern,
    mapping::loose,
    row_entry::RowEntry,
    scalar_section::{OptionForm, ScalarSection},
    words::Words,
};

/// A mapping in YAML; `MAPPING.md` documents each key.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MappingFile {
    framework: Option<String>,
    title: Option<String>,
    detect: Located<Texts>,
    format: Option<MappedFormat>,
    extends: Option<Located<String>>,
    keys: Keys,
    ignore: Texts,
    words: BTreeMap<String, Texts>,
    step: Located<Texts>,
    time: Option<Located<String>>,
    time_format: Option<Located<String>>,
    line: Located<Texts>,
    kind: Option<String>,
    rank: Option<Located<String>>,
    role: Option<Located<String>>,
    between: Option<Located<String>>,
    sign: Option<Located<String>>,
    unknown: Unknown,
    prefixes: BTreeMap<String, String>,
    values: Vec<Located<RowEntry>>,
    records: BTreeMap<String, Vec<Located<RowEntry>>>,
    scalars: Scalars,
}

/// An error in a mapping, with the line and the column of the key that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingFault {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The error.
    pub message: String,
    /// How to correct it, if that is known.
    pub remedy: Option<String>,
}

/// The error of a text that is not the YAML of a mapping.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MappingFileError(#[from] serde_saphyr::Error);

/// The comparison of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Keys {
    #[default]
    Exact,
    Loose,
}

/// The action for keys without a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unknown {
    /// Keep their values as `train.custom`.
    #[default]
    Keep,
    /// Drop their values.
    Drop,
}

/// The mapping of a trainer's tags in TensorBoard and wandb files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Scalars {
    signatures: Texts,
    options: Texts,
    configuration: Texts,
    steps: Texts,
    /// Kinds of records whose keys are tags too.
    records: Texts,
    prefixes: BTreeMap<String, String>,
    values: Vec<Located<RowEntry>>,
}

impl MappingFile {
    /// Reads a mapping from YAML; environment variables are not expanded.
    ///
    /// # Errors
    /// Returns the error of the YAML reader.
    pub fn parse(text: &str) -> Result<Self, MappingFileError> {
        let mut options = Options::default().with_properties(std::collections::HashMap::new());
        options.property_syntax = PropertySyntax::DockerCompose;
        Ok(serde_saphyr::from_str_with_options(text, options)?)
    }

    /// Builds the mapping.
    ///
    /// # Errors
    /// Returns all errors, with their positions.
    pub fn build(&self) -> Result<Mapping, Vec<MappingFault>> {
        let (mut mapping, mut faults) = (Mapping::default(), Vec::new());
        self.set_reading(&mut mapping, &mut faults);
        mapping.steps.clone_from(&self.step.0);
        mapping.time = self.time.as_ref().map(|time| time.value.clone());
        mapping.kind.clone_from(&self.kind);
        let text = |placed: &Option<Located<String>>| placed.as_ref().map(|placed| placed.value.clone());
        mapping.rank = text(&self.rank);
        mapping.role = text(&self.role);
        if let Some(form) = &self.time_format {
            match TimeForm::parse(form) {
                Ok(form) => mapping.time_form = form,
                Err(error) => faults.push(form.at(&error, error.remedy())),
            }
        }
        if self.format == Some(MappedFormat::Csv) {
            let keys = self.rank.iter().chain(&self.role);
            let message = "rows of a table have no rank and no role";
            faults.extend(keys.map(|key| key.at(message, Some("remove the key, or set another format"))));
        }
        mapping.is_loose = self.keys == Keys::Loose;
        if mapping.is_loose {
            faults.extend(self.unmatchable_keys());
        }
        mapping.ignored.clone_from(&self.ignore.0);
        let words = self.words.iter();
        let pairs =
            words.flat_map(|(english, words)| words.0.iter().map(|word| (english.as_str(), word.as_str())));
        mapping.words = Words::new(pairs);
        mapping.drops_unknown = self.unknown == Unknown::Drop;
        mapping.table = table(&self.values, &self.prefixes, &mut faults);
        for (kind, rows) in &self.records {
            let table = table(rows, &BTreeMap::new(), &mut faults);
            mapping.records.insert(kind.clone(), table);
        }
        match self.scalars.build(&mapping.records, &mut faults) {
            Ok(scalars) => mapping.scalars = scalars,
            Err(error) => faults.push(MappingFault {
                line: 1,
                column: 1,
                message: error.message,
                remedy: error.remedy,
            }),
        }
        faults.extend(self.fault_of_extension());
        if faults.is_empty() {
            Ok(match &self.extends {
                Some(format) => mapping.extending(format),
                None => mapping,
            })
        } else {
            Err(faults)
        }
    }

    /// Returns the error of a syntax next to `extends`, which has that of its format.
    fn fault_of_extension(&self) -> Option<MappingFault> {
        let is_set = self.format.is_some()
            || self.keys != Keys::Exact
            || self.between.is_some()
            || self.sign.is_some()
            || !self.detect.0.is_empty();
        let extends = self.extends.as_ref().filter(|_| is_set)?;
        let message = "a mapping that extends a format reads the log as that format does";
        Some(extends.at(message, Some("remove format, keys, between, sign and detect")))
    }

    /// Returns the errors of keys that loose comparison never finds.
    fn unmatchable_keys(&self) -> Vec<MappingFault> {
        let error = |key: &str| {
            let is_form = key.contains('{');
            let spelling = loose(key);
            (!is_form && spelling != key).then(|| {
                let message = format!("{key:?} matches no key with keys: loose");
                MappingError::new(MappingPart::Key, message).with_remedy(match spelling.is_empty() {
                    true => "a key needs a letter or a digit".to_owned(),
                    false => format!("write {spelling:?}"),
                })
            })
        };
        let rows = self.values.iter().chain(self.records.values().flatten());
        let keys = rows.filter_map(|row| row.key.as_ref());
        let faults = keys
            .chain(&self.time)
            .filter_map(|key| Some(key.at_error(&error(key)?)));
        let steps = self.step.0.iter();
        faults
            .chain(steps.filter_map(|key| Some(self.step.at_error(&error(key)?))))
            .collect()
    }

    /// Sets the logs that the mapping is for, and the parsing of their lines into fields.
    fn set_reading(&self, mapping: &mut Mapping, faults: &mut Vec<MappingFault>) {
        mapping.framework.clone_from(&self.framework);
        mapping.title.clone_from(&self.title);
        mapping.format = self.format;
        for pattern in &self.detect.0 {
            faults.extend(self.detect.fault(mapping.add_detect(pattern)));
        }
        for pattern in &self.line.0 {
            faults.extend(self.line.fault(mapping.add_line(pattern)));
        }
        let text = |placed: &Option<Located<String>>| placed.as_ref().map(|placed| placed.value.clone());
        let pairs = mapping.set_pairs(text(&self.between).as_deref(), text(&self.sign).as_deref());
        let placed = self.between.as_ref().or(self.sign.as_ref());
        faults.extend(placed.and_then(|placed| placed.fault(pairs)));
    }
}

impl Scalars {
    fn build(
        &self,
        records: &BTreeMap<String, FieldTable>,
        faults: &mut Vec<MappingFault>,
    ) -> Result<ScalarSection, MappingError> {
        let patterns = |texts: &Texts| -> Result<Vec<KeyPattern>, MappingError> {
            texts.0.iter().map(|text| KeyPattern::key(text)).collect()
        };
        let wrong = |message| MappingError::new(MappingPart::Key, message);
        let option = |text: &String| {
            OptionForm::parse(text)
                .ok_or_else(|| wrong(format!("{text:?}: the name of the option is written as {{}}")))
        };
        let mut table = table(&self.values, &self.prefixes, faults);
        for keys in patterns(&self.steps)? {
            table.add(FieldMapping::step(keys));
        }
        for kind in &self.records.0 {
            let known = records
                .get(kind)
                .ok_or_else(|| wrong(format!("there are no records of {kind:?}")))?;
            table.extend(known);
        }
        Ok(ScalarSection {
            signatures: patterns(&self.signatures)?,
            options: self.options.0.iter().map(option).collect::<Result<_, _>>()?,
            configuration: patterns(&self.configuration)?,
            table,
        })
    }
}

fn table(
    rows: &[Located<RowEntry>],
    prefixes: &BTreeMap<String, String>,
    faults: &mut Vec<MappingFault>,
) -> FieldTable {
    let mut table = FieldTable::default();
    let mut lines = BTreeMap::new();
    for entry in rows {
        match entry.value.build() {
            Ok(row) => {
                let is_pattern = matches!(row.keys, KeyPattern::Regex(_));
                let keys = (is_pattern, row.keys.text().to_owned());
                if let Some(first) = lines.insert(keys, entry.line) {
                    let message = format!(
                        "{:?} has a row on line {first}: remove one of them",
                        row.keys.text()
                    );
                    let error = MappingError::new(MappingPart::Key, message);
                    faults.push(entry.value.fault(entry, &error));
                }
                table.add(row);
            }
            Err(error) => faults.push(entry.value.fault(entry, &error)),
        }
    }
    prefixes.iter().for_each(|(from, to)| table.add_prefix(from, to));
    table
}

/// A value with its position. Equality ignores the position, so that a moved line changes nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    line: u64,
    column: u64,
}

impl<T> Located<T> {
    pub(crate) fn at(&self, message: impl fmt::Display, remedy: Option<&str>) -> MappingFault {
        MappingFault {
            line: self.line,
            column: self.column,
            message: message.to_string(),
            remedy: remedy.map(str::to_owned),
        }
    }

    pub(crate) fn at_error(&self, error: &MappingError) -> MappingFault {
        self.at(&error.message, error.remedy.as_deref())
    }

    fn fault(&self, outcome: Result<(), MappingError>) -> Option<MappingFault> {
        outcome.err().map(|error| self.at_error(&error))
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> std::ops::Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned {
            value, referenced, ..
        } = Spanned::deserialize(deserializer)?;
        Ok(Self {
            value,
            line: referenced.line(),
            column: referenced.column(),
        })
    }
}

/// One text, or a list of texts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = list.next_element()? {
                    texts.push(text);
                }
                Ok(Texts(texts))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(yaml: &str) -> Vec<MappingFault> {
        let built = MappingFile::parse(yaml).unwrap().build();
        built.err().unwrap_or_default()
    }

    #[test]
    fn mapping_with_a_pair_delimiter_selects_the_key_value_format() {
        let format = |yaml| MappingFile::parse(yaml).unwrap().build().unwrap().format();
        assert_eq!(format("{}"), None);
        assert_eq!(format("between: ' | '"), Some(MappedFormat::KeyValue));
    }

    const PAGE: &str = include_str!("../MAPPING.md");

    /// Returns the keys that the YAML reader lists for an unknown key.
    fn keys_of(yaml: &str) -> Vec<String> {
        let error = MappingFile::parse(yaml).unwrap_err().to_string();
        let (_, list) = error
            .split_once("expected one of")
            .unwrap_or_else(|| panic!("{error}"));
        let list = list.lines().next().unwrap_or_default();
        let words = list.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let names = words.filter(|word| !word.is_empty());
        names.map(str::to_owned).collect()
    }

    #[test]
    fn the_page_documents_every_key() {
        for (yaml, heading, least) in [
            ("nonsense: 1", "### Keys of a mapping", 17),
            ("values: [{nonsense: 1}]", "### Keys of a row", 15),
            ("scalars: {nonsense: 1}", "### Tags", 7),
        ] {
            let keys = keys_of(yaml);
            assert!(keys.len() >= least, "{keys:?}");
            let section = PAGE.split_once(heading).unwrap().1;
            let section = section.split("\n##").next().unwrap();
            let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
            let is_documented = |key: &String| {
                let name = format!("`{key}`");
                rows.iter()
                    .any(|row| row.split('|').nth(1).unwrap_or_default().contains(&name))
            };
            let missing: Vec<_> = keys.iter().filter(|key| !is_documented(key)).collect();
            assert!(missing.is_empty(), "{heading} lacks {missing:?}");
        }
    }

    #[test]
    fn every_mapping_of_the_page_can_be_built() {
        let blocks = PAGE.split("```yaml\n").skip(1);
        let blocks: Vec<&str> = blocks.filter_map(|block| block.split("```").next()).collect();
        assert!(blocks.len() > 10);
        // One block is a configuration of the agent, which is skipped.
        for block in blocks.iter().filter(|block| !block.starts_with("sources:")) {
            let built = MappingFile::parse(block).map(|file| file.build().map(drop));
            assert_eq!(built.unwrap(), Ok(()), "{block}");
        }
    }

    #[test]
    fn the_page_lists_every_spelling_of_a_unit() {
        for unit in [
            "s", "By", "By/s", "{flop}", "{flop}/s", "1", "W", "J", "Hz", "Cel",
        ] {
            let start = format!("| `{unit}` |");
            let row = PAGE.lines().find(|line| line.starts_with(&start)).unwrap();
            for spelling in crate::unit::spellings_of(unit).split(", ") {
                assert!(row.contains(&format!("`{spelling}`")), "{unit}: {spelling}");
            }
        }
    }

    #[test]
    fn every_mapping_error_has_its_column_and_a_suggestion() {
        let cases = [
            ("{key: loss, metric: train.los}", 25, "semconv list"),
            ("{key: x, metric: my.loss}", 22, "train.loss"),
            ("{key: t, metric: perf.step_time, unit: GiB}", 44, "ms"),
            ("{key: l, metric: train.epoch, unit: ms}", 41, "k, K, M"),
            ("{key: '', metric: train.loss}", 11, "not empty"),
            (
                "{pattern: 'loss_(', metric: train.loss}",
                15,
                "regular expression",
            ),
            ("{pattern: '(?<gpu>.*)', metric: train.loss}", 15, "it has none"),
            ("{key: 'a/{gpu}', metric: train.loss}", 11, "it has none"),
            ("{key: '{a}{b}', metric: train.loss}", 11, "text between"),
            ("{key: loss, metric: train.loss, total: true}", 25, "counter"),
            (
                "{key: t, metric: perf.step_time, unit: ms, factor: 1}",
                44,
                "keep one",
            ),
            (
                "{key: r, metric: rl.trajectory_reward, attributes: {rl.statistic: median}}",
                71,
                "mean",
            ),
            (
                "{key: r, metric: rl.trajectory_reward, attributes_from: {gpu.id: gpu}}",
                70,
                "rl.statistic",
            ),
            (
                "{key: 'r_{rl.statistic}', metric: rl.trajectory_reward, attributes: {rl.statistic: mean}}",
                88,
                "two values",
            ),
            ("{key: t, metric: perf.step_time, factor: 0}", 46, "drop: true"),
            ("{key: r, keep: true, drop: true}", 5, "one of"),
            ("{key: r, option: ''}", 22, "not empty"),
            ("{key: r, drop: true, reason: dull}", 34, "jax_time_of_day"),
            ("{key: r, keep: true, reason: mapping}", 34, "drop: true"),
            ("{key: t, metric: perf.step_time, unit: ''}", 44, "ms"),
            (
                "{key: t, metric: perf.step_time, unit: ms, default_unit: s}",
                44,
                "keep one",
            ),
            (
                "{key: t, metric: perf.step_time, factor: 2, default_unit: s}",
                63,
                "keep one",
            ),
        ];
        let shown = |fault: &MappingFault| {
            let remedy = fault.remedy.as_deref().unwrap_or_default();
            format!("{}; {remedy}", fault.message)
        };
        for (row, column, text) in cases {
            let found = faults(&format!("values:\n  - {row}"));
            let [fault] = &found[..] else {
                panic!("{row}: {found:?}")
            };
            assert_eq!(
                (fault.line, fault.column),
                (2, column),
                "{row}: {}",
                fault.message
            );
            assert!(shown(fault).contains(text), "{row}: {}", shown(fault));
        }
        let twice = faults("values:\n  - {key: r, keep: true}\n  - {key: r, drop: true}");
        assert_eq!((twice.len(), twice[0].line, twice[0].column), (1, 3, 11));
        assert!(twice[0].message.contains("on line 2"), "{}", twice[0].message);
        let loose = faults("keys: loose\nstep: n/total\nvalues: [{key: LR, keep: true}]");
        let positions: Vec<_> = loose.iter().map(|fault| (fault.line, fault.column)).collect();
        assert_eq!(positions, [(3, 16), (2, 7)], "{loose:?}");
        assert!(shown(&loose[0]).contains("\"lr\""), "{}", shown(&loose[0]));
        let delimiter = faults("format: json\nbetween: ' '");
        assert!(delimiter[0].message.contains("keyvalue"), "{delimiter:?}");
        let other = faults("line: '('\nbetween: ''\ntime_format: iso\nscalars: {options: x}");
        assert_eq!(other.len(), 4, "{other:?}");
        for directives in ["%Q", "%H:%M:%S", "%d/%m", "%Y-%m-%d %Z", "%!"] {
            let time = faults(&format!("time_format: '{directives}'"));
            assert!(
                time[0].message.contains("cannot be read"),
                "{directives}: {time:?}"
            );
        }
    }
}
