//! The planned length of a run, computed from its options and data like Surogate's trainer (`surogate/train/trainer.py`:
//! `max_steps`, else the steps of an epoch times `num_epochs`).

use super::super::record::RecordValue;

/// The known parameters of the plan.
#[derive(Debug, Default)]
pub(super) struct Plan {
    max_steps: Option<f64>,
    epochs: Option<f64>,
    tokens: Option<f64>,
}

impl Plan {
    /// Sets an option.
    pub(super) fn option(&mut self, name: &str, value: Option<&RecordValue<'_>>) {
        let value = value.and_then(RecordValue::as_f64).filter(|value| *value > 0.0);
        match name {
            "max_steps" => self.max_steps = value,
            "num_epochs" => self.epochs = value,
            _ => {}
        }
    }

    /// Sets the number of training tokens.
    pub(super) fn dataset(&mut self, tokens: Option<f64>) {
        self.tokens = tokens;
    }

    /// Returns the completed share of the run after a step with this number of tokens, or `None` if the length is unknown.
    pub(super) fn progress(&self, step: i64, step_tokens: Option<f64>) -> Option<f64> {
        let of_epochs = || {
            let of_one = (self.tokens? / step_tokens?).floor();
            Some(of_one * self.epochs?)
        };
        let all = self.max_steps.or_else(of_epochs)?;
        let progress = (step as f64 + 1.0) / all;
        (0.0..=1.0).contains(&progress).then_some(progress)
    }
}
