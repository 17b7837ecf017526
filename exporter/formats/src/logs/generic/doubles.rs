//! Lines that come twice: a program with two handlers of its log writes each record with two prefixes.

use pulsetrain_mapping::{Field, FieldValue};

/// The newest record of a log.
#[derive(Debug, Default)]
pub(super) struct Doubles {
    newest: Vec<(String, String)>,
    /// Whether the newest record with a step came twice.
    is_doubled: bool,
}

impl Doubles {
    /// Returns whether a record repeats the one directly before it: with its step, or in a log whose newest step came twice.
    /// Without that, equal records can be of several steps.
    pub(super) fn repeats(&mut self, fields: &[Field<'_>], has_step: bool) -> bool {
        let is_same = fields.len() == self.newest.len()
            && fields
                .iter()
                .zip(&self.newest)
                .all(|((key, value), (old_key, old))| key == old_key && *old == text(value));
        if is_same {
            self.is_doubled |= has_step;
            let repeats = self.is_doubled;
            if repeats {
                self.newest.clear();
            }
            return repeats;
        }
        if has_step && !self.newest.is_empty() {
            self.is_doubled = false;
        }
        self.newest.clear();
        let owned = fields.iter().map(|(key, value)| (key.to_string(), text(value)));
        self.newest.extend(owned);
        false
    }
}

fn text(value: &FieldValue<'_>) -> String {
    match value {
        FieldValue::Number(number) => number.to_string(),
        FieldValue::Text(text) => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_that_come_twice_with_their_step_are_repeats() {
        let mut doubles = Doubles::default();
        let mut repeats = |step: Option<f64>, loss: f64| {
            let step = step.map(|step| ("step".into(), FieldValue::Number(step)));
            let fields: Vec<Field<'_>> = step
                .clone()
                .into_iter()
                .chain([("loss".into(), FieldValue::Number(loss))])
                .collect();
            doubles.repeats(&fields, step.is_some())
        };
        assert!(!repeats(None, 2.5) && !repeats(None, 2.5));
        assert!(!repeats(Some(1.0), 2.5) && repeats(Some(1.0), 2.5));
        assert!(!repeats(None, 0.5) && repeats(None, 0.5) && !repeats(None, 0.5));
        assert!(
            !repeats(Some(2.0), 2.5)
                && !repeats(None, 0.5)
                && !repeats(Some(3.0), 2.5)
                && !repeats(None, 0.5)
        );
        assert!(!repeats(None, 0.5));
    }
}
