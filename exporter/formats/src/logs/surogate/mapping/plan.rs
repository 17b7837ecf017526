//! How long a run is to be: what its options and its data say, as Surogate's trainer reckons it
//! (`surogate/train/trainer.py`: `max_steps`, else the steps of an epoch times `num_epochs`).

use super::super::record::Value;

/// What is known of the plan of a run.
#[derive(Debug, Default)]
pub(super) struct Plan {
    max_steps: Option<f64>,
    epochs: Option<f64>,
    tokens: Option<f64>,
}

impl Plan {
    /// Takes in an option.
    pub(super) fn option(&mut self, name: &str, value: Option<&Value<'_>>) {
        let value = value.and_then(Value::as_f64).filter(|value| *value > 0.0);
        match name {
            "max_steps" => self.max_steps = value,
            "num_epochs" => self.epochs = value,
            _ => {}
        }
    }

    /// Takes in how many tokens there are to train on.
    pub(super) fn dataset(&mut self, tokens: Option<f64>) {
        self.tokens = tokens;
    }

    /// The share of the run that is done with a step of so many tokens; nothing where its length is not known.
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
