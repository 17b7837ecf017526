//! Tests of lines of every kind, alone and after others.

use super::*;
use crate::logs::sampled::Sampled;

#[test]
fn configuration_steps_and_gpus_are_distinguished() {
    let read = Sampled::read(
        &FORMAT,
        "{\"type\": \"config\", \"ts\": 1795220320.5, \"lr\": 0.0002, \"model\": \"m\"}\n\
         {\"step\": 3, \"ts\": 1795220321.5, \"train/loss\": NaN, \"train/duration_ms\": 120, \"train/phase\": \"warmup\", \"turn/novel\": 2}\n\
         {\"type\": \"gpu\", \"step\": 3, \"gpu_id\": 1, \"ts\": 1795220321.6, \"power\": 350000, \"throttle\": \"no cap\"}\n",
    );
    assert!(read.values("train.loss")[0].is_nan());
    assert_eq!(read.values("gpu.power"), [350.0]);
    assert_eq!(read.values("train.custom"), [2.0]);
    assert_eq!(
        (read.counts.events, read.counts.spans, read.counts.records),
        (1, 1, 3)
    );
    assert!(!read.skipped.has_losses());
}

#[test]
fn reinforcement_learning_keys_are_mapped() {
    let read = Sampled::read(
        &FORMAT,
        "{\"step\": 1, \"ts\": 1.5, \"train/policy_loss\": 0.1, \"train/mismatch_kl\": 0.2, \"train/is_masked\": 0.25, \
         \"train/is_masked_low\": 0.2, \"train/teacher_kl\": 0.3, \"train/keep_tokens\": 10, \"train/total_tokens\": 12, \
         \"train/micro_batches\": 4, \"train/vtc\": 9, \"train/expected_loss_scale\": 1.0, \"train/orch_step\": 7}",
    );
    assert_eq!(read.values("rl.policy_loss"), [0.1]);
    assert_eq!(read.values("train.custom"), [0.2, 7.0]);
    assert_eq!((read.counts.points, read.skipped.counts().count()), (13, 0));
}

#[test]
fn gpu_points_carry_the_id_and_index_of_their_gpu() {
    let mut text = String::new();
    for number in 0..300 {
        let (gpu, power) = (number % 100, 1000 * number);
        text += &format!(
            "{{\"type\": \"gpu\", \"step\": 1, \"gpu_id\": {gpu}, \"ts\": {number}, \"power\": {power}, \"gpu_util\": -1}}\n"
        );
    }
    let read = Sampled::read(&FORMAT, &text);
    let expected: Vec<f64> = (0..300).map(f64::from).collect();
    assert_eq!(read.values("gpu.power"), expected);
    for (number, attributes) in read.attributes("gpu.power").iter().enumerate() {
        let gpu = number % 100;
        let expected = format!("gpu.id={gpu} gpu.index=Int({gpu}) gpu.power.reading=derived");
        assert_eq!(attributes, &expected);
    }
    assert_eq!(read.counts.points, 300);
}
