//! Tables of YOLO with the results of an evaluation for each class: `Class Images Instances Box(P R mAP50 mAP50-95)`.

use pulsetrain_mapping::{Field, FieldValue};
use std::borrow::Cow;

use super::section::EVAL_PREFIX;

/// The first columns of a header.
const FIRST_COLUMNS: [&str; 2] = ["Class", "Images"];

/// The name of the row over all classes.
const ALL: &str = "all";

/// The columns of the table, without the class; empty after its last row.
#[derive(Debug, Default)]
pub(super) struct ClassTable(Vec<String>);

impl ClassTable {
    /// Returns the values in a row, or `None` for any other line. A header begins a table, and any other line ends it.
    pub(super) fn row(&mut self, line: &str) -> Option<Vec<Field<'static>>> {
        if self.0.is_empty() && !line.contains(FIRST_COLUMNS[0]) {
            return None;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        let is_header = cells.starts_with(&FIRST_COLUMNS) && (line.contains('(') || line.contains("mAP"));
        if is_header {
            self.0 = columns(&cells[1..]);
            return None;
        }
        let fields = self.fields(&cells);
        if fields.is_none() {
            self.0.clear();
        }
        fields
    }

    fn fields(&self, cells: &[&str]) -> Option<Vec<Field<'static>>> {
        // The name of a class can have spaces.
        let (class, numbers) = cells.split_at_checked(cells.len().checked_sub(self.0.len())?)?;
        if self.0.is_empty() || class.is_empty() {
            return None;
        }
        let class = class.join(" ");
        let values = self.0.iter().zip(numbers).map(|(column, number)| {
            let key = match class.as_str() {
                ALL => [EVAL_PREFIX, column].concat(),
                class => [EVAL_PREFIX, class, " ", column].concat(),
            };
            Some((Cow::Owned(key), FieldValue::Number(number.parse().ok()?)))
        });
        values.collect()
    }
}

/// Returns the names of columns, up to the colon before a bar: `Box P`, `Box R`, `Box mAP50` for `Box(P R mAP50)`.
fn columns(cells: &[&str]) -> Vec<String> {
    let mut group = "";
    let end = cells.iter().position(|cell| cell.ends_with(':'));
    let header = &cells[..end.map_or(cells.len(), |end| end + 1)];
    let names = header.iter().copied().map(|cell| {
        let (begun, name) = cell.split_once('(').unwrap_or((group, cell));
        let name = name.trim_end_matches(':');
        group = if name.ends_with(')') { "" } else { begun };
        [begun, name.trim_end_matches(')')]
            .join(" ")
            .trim_start()
            .to_owned()
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_names_of_their_class_and_column() {
        let mut table = ClassTable::default();
        let mut keys = |line| {
            let row = table.row(line).unwrap_or_default();
            row.into_iter()
                .map(|(key, _)| key.into_owned())
                .collect::<Vec<_>>()
        };
        assert!(keys("all 4 0.5").is_empty());
        assert!(keys("Class Images Box(P R) Mask(P R): 100%|##| 2/2 [00:00<00:00, 3.0it/s]").is_empty());
        assert_eq!(
            keys("  all 4 0.5 0.25 0.5 nan"),
            [
                "eval Images",
                "eval Box P",
                "eval Box R",
                "eval Mask P",
                "eval Mask R"
            ]
        );
        assert_eq!(
            keys("traffic light 4 0.5 0.25 0.5 0.25")[1],
            "eval traffic light Box P"
        );
        assert_eq!(keys("1 4 0.5 0.25 0.5 0.25")[1], "eval 1 Box P");
        for other in [
            "all 4 0.5 0.25 0.5 x",
            "all 4 0.5 0.25 0.5 0.25",
            "Class Images",
            "all 4",
        ] {
            assert!(keys(other).is_empty(), "{other}");
        }
    }
}
