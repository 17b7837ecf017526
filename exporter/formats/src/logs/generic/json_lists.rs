//! Histories in JSON: an object of lists, as `History` of Keras and Sacred write it, with one record for each index.
//!
//! Lists of the same object and of the same length are columns. `{"loss": {"steps": [..], "values": [..]}}` is a column `loss`
//! with its steps.

use pulsetrain_mapping::{Field, FieldValue, number_text};
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

/// The names of lists in the object of one metric.
const VALUES: &str = "values";
const STEPS: &str = "steps";

/// The key of a step.
const STEP: &str = "step";

/// The fewest values of a history.
const FEWEST: usize = 2;

/// Lists of the same length.
#[derive(Debug)]
pub(super) struct History {
    columns: Vec<(String, Vec<Option<f64>>)>,
}

/// A list of numbers with its name.
type Column = (String, Vec<Option<f64>>);

/// The most histories that are compared with another one.
const MAX_OTHERS: usize = 256;

impl History {
    /// Returns the histories in the fields of an object whose lists were kept as text.
    pub(super) fn parse(fields: &[Field<'_>]) -> Vec<Self> {
        let mut groups: BTreeMap<(usize, String, usize), Vec<Column>> = BTreeMap::new();
        let mut order: HashMap<(String, usize), usize> = HashMap::new();
        for (key, value) in fields {
            if let FieldValue::Text(text) = value
                && let Some(list) = numbers(text).filter(|list| list.len() >= FEWEST)
            {
                let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
                let next = order.len();
                let rank = *order.entry((parent.to_owned(), list.len())).or_insert(next);
                let group = groups.entry((rank, parent.to_owned(), list.len())).or_default();
                group.push((name.to_owned(), list));
            }
        }
        let mut found: Vec<(String, Self)> = Vec::new();
        for ((_, parent, _), same) in groups {
            let is_metric = same.iter().any(|list| list.0 == VALUES) && !parent.is_empty();
            let columns = same.into_iter().map(|(name, list)| match name.as_str() {
                VALUES if is_metric => (parent.clone(), list),
                STEPS if is_metric => (STEP.to_owned(), list),
                _ => (name, list),
            });
            let history = Self {
                columns: columns.collect(),
            };
            let mut others = found.iter_mut().filter(|_| is_metric).take(MAX_OTHERS);
            match others.find(|(_, other)| other.continues(&history)) {
                Some((_, other)) => other.join(history),
                None => found.push((parent, history)),
            }
        }
        found.into_iter().map(|(_, history)| history).collect()
    }

    /// Returns the names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the fields of each record, without those that are `null`.
    pub(super) fn records(&self) -> impl Iterator<Item = Vec<Field<'_>>> {
        let len = self.columns.first().map_or(0, |(_, list)| list.len());
        (0..len).map(|at| {
            let columns = self.columns.iter();
            let values = columns.filter_map(|(name, list)| {
                Some((Cow::Borrowed(name.as_str()), FieldValue::Number(list[at]?)))
            });
            values.collect()
        })
    }

    /// Returns whether another history has the same steps.
    fn continues(&self, other: &Self) -> bool {
        let steps = |history: &Self| {
            let steps = history.columns.iter().find(|(name, _)| name == STEP);
            steps.map(|(_, list)| list.clone())
        };
        steps(self).is_some() && steps(self) == steps(other)
    }

    fn join(&mut self, other: Self) {
        let new = other.columns.into_iter().filter(|(name, _)| {
            let mut known = self.columns.iter();
            known.all(|(known, _)| known != name)
        });
        let new: Vec<_> = new.collect();
        self.columns.extend(new);
    }
}

/// Parses a list of numbers and of `null`; `None` for any other text.
fn numbers(text: &str) -> Option<Vec<Option<f64>>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let number = |text: &str| match text.trim() {
        "null" | "None" => Some(None),
        number => number_text::any(number).map(Some),
    };
    inner.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::literal;

    fn records(text: &str) -> Vec<String> {
        let mut fields = Vec::new();
        literal::read(text, literal::DEPTH, &mut fields).unwrap();
        let histories = History::parse(&fields);
        let shown = histories.iter().flat_map(History::records).map(|record| {
            let fields = record
                .iter()
                .map(|(key, value)| format!("{key}={}", value.number().unwrap()));
            fields.collect::<Vec<_>>().join(" ")
        });
        shown.collect()
    }

    #[test]
    fn lists_of_the_same_length_are_one_record_for_each_index() {
        assert_eq!(
            records(r#"{"loss": [2.5, NaN], "acc": [0.5, null], "betas": [0.9, 0.95, 1], "note": "x"}"#)[..2],
            ["loss=2.5 acc=0.5".to_owned(), "loss=NaN".to_owned()]
        );
        assert_eq!(
            records(r#"{"history": {"epoch": [1, 2], "loss": [2.5, 2]}, "params": {"epochs": 2}}"#),
            ["epoch=1 loss=2.5", "epoch=2 loss=2"]
        );
        assert!(records(r#"{"loss": [[2.5], [2]], "sizes": ["a", "b"], "lr": [0.1]}"#).is_empty());
    }

    #[test]
    fn lists_of_one_metric_have_its_name_and_steps() {
        let text = r#"{"loss": {"steps": [10, 20], "timestamps": ["a", "b"], "values": [2.5, 2]},
            "acc": {"steps": [10, 20], "values": [0.5, 0.6]}, "val": {"steps": [20, 40], "values": [3, 4]}}"#;
        assert_eq!(
            records(text),
            [
                "step=10 loss=2.5 acc=0.5",
                "step=20 loss=2 acc=0.6",
                "step=20 val=3",
                "step=40 val=4"
            ]
        );
    }
}
