//! JSON over several lines, histories of lists, and nested objects.

use super::{FORMAT, agree, read};
use crate::logs::sampled::Sampled;

#[test]
fn history_of_lists_is_one_record_for_each_index() {
    for log in [
        "{\"epoch\": [1, 2, 3], \"loss\": [2.5, 2.25, 2.0], \"val_loss\": [3.5, NaN, 3.0]}\n",
        "{\n  \"params\": {\"epochs\": 3},\n  \"history\": {\n    \"epoch\": [\n      1,\n      2,\n      3\n    ],\n    \"loss\": [2.5,\n 2.25,\n 2.0],\n    \
         \"val_loss\": [3.5, NaN, 3.0]\n  }\n}\n",
        "{'loss': {'steps': [1, 2, 3], 'values': [2.5, 2.25, 2.0]}, 'epoch': {'steps': [1, 2, 3], 'values': [1, 2, 3]},\n\
         'val_loss': {'steps': [1, 2, 3], 'values': [3.5, nan, 3.0]}}\n",
    ] {
        let read = read(log);
        assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0], "{log}");
        assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0], "{log}");
        assert_eq!(read.values("eval.loss").len(), 3, "{log}");
    }
    // Lists next to the values of a step are no history.
    let lines = "{\"step\": 1, \"loss\": 2.5, \"lrs\": [0.5, 0.5]}\n{\"step\": 2, \"loss\": 2.25, \"lrs\": [0.5, 0.5]}\n{\"step\": 3, \"loss\": 2.0}\n";
    assert_eq!(read(lines).values("train.loss"), [2.5, 2.25, 2.0]);
}

#[test]
fn objects_of_a_list_and_over_several_lines_are_records() {
    for log in [
        "[{\"step\": 1, \"loss\": 2.5}, {\"step\": 2, \"loss\": 2.25}, {\"step\": 3, \"loss\": 2.0}]\n",
        "[\n  {\n    \"step\": 1,\n    \"loss\": 2.5\n  },\n  {\n    \"step\": 2,\n    \"loss\": 2.25\n  },\n  {\"step\": 3, \"loss\": 2.0}\n]\n",
        "{\n  \"note\": \"a, b\",\n  \"rows\": [\n    {\"step\": 1, \"loss\": 2.5},\n    {\"step\": 2, \"loss\": 2.25},\n    {\"step\": 3, \"loss\": 2.0}\n  ]\n}\n",
    ] {
        let read = read(log);
        assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0], "{log}");
        assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0], "{log}");
    }
    let settings = "{\n  \"loss_scale\": 128,\n  \"lr\": 0.5\n}\n".repeat(4);
    assert!(!agree(settings.as_bytes()));
    assert_eq!(Sampled::read(&FORMAT, &settings).counts.records, 0);
}

#[test]
fn tail_of_a_path_decides_unless_two_paths_have_it() {
    let line = |step: u32| {
        format!(
            "{{\"iteration\": {step}, \"stats\": {{\"agent_x\": {{\"total_loss\": 2.{step}, \"kl\": 0.5}}}}, \
             \"a\": {{\"grad_norm\": 1}}, \"b\": {{\"grad_norm\": 2}}, \"config\": {{\"lr\": 0.25}}}}\n"
        )
    };
    let read = read(&(1..5).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3, 2.4]);
    assert_eq!(read.values("rl.kl"), [0.5; 4]);
    assert!(read.values("train.grad_norm").is_empty());
    assert!(read.values("train.learning_rate").is_empty());
}
