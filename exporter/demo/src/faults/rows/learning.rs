//! Faults of the learning: loss, gradients, evaluation, experts.

use super::super::{
    Action::{Steps, Values},
    FaultRow,
};
use crate::{config::Workload, job::StepValues};

pub(super) static ROWS: &[FaultRow] = &[
    FaultRow::of_run(
        "nan-loss",
        "loss and gradient norm are NaN",
        Values(|values, _| (values.loss, values.grad_norm) = (f64::NAN, f64::NAN)),
    )
    .verdict("nonfinite_loss")
    .steps(60, 0),
    FaultRow::of_run(
        "loss-spike",
        "the loss is 1.7 times its usual value for six steps, without a spike of the gradient norm",
        Values(|values, _| values.loss *= 1.7),
    )
    .verdict("loss_spike")
    .steps(80, 6),
    FaultRow::of_run(
        "gradient-spike",
        "the gradient norm is 20 times its usual value for two steps",
        Values(|values, _| values.grad_norm *= 20.0),
    )
    .verdict("grad_norm_spike")
    .steps(80, 2),
    FaultRow::of_run(
        "vanished-gradients",
        "the gradient norm is zero",
        Values(|values, _| values.grad_norm = 0.0),
    ),
    FaultRow::of_run(
        "diverging",
        "the loss grows by 0.1 % a step, and the trainer reports the phase diverging",
        Values(|values, steps| {
            values.loss *= 1.001_f64.powi(steps as i32);
            values.phase = "diverging";
        }),
    ),
    FaultRow::of_run(
        "skipped-steps",
        "one step in five overflows in half precision: its update is skipped, and the loss scale is halved",
        Values(|values, steps| {
            values.is_skipped = steps % 5 == 0;
            values.loss_scale = (values.loss_scale * 0.5_f64.powi((steps / 5) as i32)).max(1.0);
        }),
    ),
    FaultRow::of_run(
        "overfitting",
        "the loss on held-out data is 1.6 times its usual value",
        Steps(|effects, _| effects.eval_loss = 1.6),
    )
    .steps(60, 300),
    FaultRow::of_run(
        "router-collapse",
        "the router sends all tokens to 30 % of the experts",
        Values(|values, _| {
            change_moe(values, |moe| {
                moe.expert_utilization *= 0.3;
                moe.load_imbalance = moe.load_imbalance.max(3.3);
                moe.router_entropy *= 0.4;
            });
        }),
    )
    .only(Workload::Sft),
    FaultRow::of_run(
        "expert-imbalance",
        "the busiest expert has six times the mean load",
        Values(|values, _| change_moe(values, |moe| moe.load_imbalance = 6.0)),
    )
    .only(Workload::Sft),
];

fn change_moe(values: &mut StepValues, change: fn(&mut crate::job::MoeValues)) {
    if let Some(moe) = &mut values.moe {
        change(moe);
    }
}
