//! Records of evaluations, which are not of training.

use super::{FORMAT, read};
use crate::logs::sampled::Sampled;

#[test]
fn evaluation_line_is_recorded_as_eval_metrics() {
    let read = read(
        "Epoch 1 step 10 loss 2.5\nEpoch 1 step 20 loss 2.25\nEpoch 2 step 30 loss 2\n\
         Validation: loss 1.5, accuracy 81.5%\n\
         Test set: Average loss: 1.25, Accuracy: 9000/10000 (90%)\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("eval.loss"), [1.5, 1.25]);
    assert_eq!(read.values("eval.accuracy"), [0.815, 0.9]);
}

#[test]
fn evaluations_are_recognised_by_field_keyword_or_section() {
    let objects = read(
        "{\"split\": \"train\", \"step\": 1, \"loss\": 2.5}\n{\"split\": \"train\", \"step\": 2, \"loss\": 2.25}\n\
         {\"split\": \"val\", \"step\": 2, \"loss\": 2.75}\n{\"split\": \"train\", \"step\": 3, \"loss\": 2}\n",
    );
    assert_eq!(objects.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(objects.values("eval.loss"), [2.75]);
    let table = read("step,mode,loss\n1,train,2.5\n2,train,2.25\n2,eval,2.75\n3,train,2\n");
    assert_eq!(table.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(table.values("eval.loss"), [2.75]);
    let sections = read(
        "Epoch 1 - Train: loss 2.5, acc 0.25 | Val: loss 2.75, acc 0.125\n\
         Epoch 2 - Train: loss 2.25, acc 0.5 | Val: loss 2.5, acc 0.25\n\
         Epoch 3 - Train: loss 2, acc 0.75 | Val: loss 2.25, acc 0.5\n",
    );
    assert_eq!(sections.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(sections.values("eval.loss"), [2.75, 2.5, 2.25]);
    assert_eq!(sections.values("eval.accuracy"), [0.125, 0.25, 0.5]);
    let bare =
        read("step 1 loss 2.5\nstep 2 loss 2.25\n[val] step 2 loss 2.75\nstep 3 val_loss 2.5 loss 2\n");
    assert_eq!(bare.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(bare.values("eval.loss"), [2.75, 2.5]);
}

#[test]
fn evaluation_with_its_own_counter_or_heading_is_not_training() {
    let read = read(
        "Train: [0/2][10/20] loss 2.5\nTrain: [0/2][20/20] loss 2.25\n\
         INFO Test: [0/5] Time 0.5 Loss 3.5\nValidation:  40%|####| 2/5 [00:01<00:02, loss=3.25]\n\
         Train: [1/2][10/20] loss 2\n\
         Test Error:\n Accuracy: 50.0%, Avg loss: 3.0\nloss 1.75 step 40\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0, 1.75]);
    assert_eq!(read.values("eval.loss"), [3.5, 3.25, 3.0]);
    assert_eq!(read.values("eval.accuracy"), [0.5]);
    assert_eq!(read.values("train.global_step"), [10.0, 20.0, 30.0, 40.0]);
    assert!(read.values("train.step.duration").is_empty());
    let labelled = self::read(
        "step 1 loss 2.5\nstep 2 loss 2.25\nstep 3 loss 2\nValidation: [10/97] val_loss 2.75 val_acc 0.5\n\
         Validation [11/97] | global_step 3 | loss 2.6\nValidation: step 3/100 loss 2.5\n",
    );
    assert_eq!(labelled.values("eval.loss"), [2.75, 2.6, 2.5]);
    assert_eq!(labelled.values("eval.accuracy"), [0.5]);
    assert_eq!(labelled.values("train.global_step"), [1.0, 2.0, 3.0]);
}

#[test]
fn speed_of_an_evaluation_is_not_of_training() {
    let line = |step: u32| {
        format!(
            "[train] step {step}: loss 2.5, 1200 tok/s\n[valid] step {step}: loss 2.75, 3600 tok/s\n\
             step {step}: train loss 2.25, val loss 2.75, 1100 tok/s\n"
        )
    };
    let read = Sampled::read(&FORMAT, &(1..3).map(line).collect::<String>());
    assert_eq!(
        read.values("train.throughput.tokens"),
        [1200.0, 1100.0, 1200.0, 1100.0]
    );
    assert_eq!(read.values("train.custom"), [3600.0; 2]);
}

#[test]
fn summary_after_an_evaluation_is_of_the_evaluation() {
    let text = "Epoch: [0][ 10/50] Loss 2.5 Acc@1 10.5\nTest: [10/20] Loss 3.5 Acc@1 9.5\n *   Acc@1 9.25 loss 3.25\n\
                Epoch: [1][ 10/50] Loss 2.25 Acc@1 12.5\n * Acc@1 11.5\n";
    let read = Sampled::read(&FORMAT, text);
    assert_eq!(read.values("train.loss"), [2.5, 2.25]);
    let training = read.values("train.accuracy");
    assert_eq!(training.len(), 3, "{training:?}");
    assert_eq!(read.values("eval.loss"), [3.5, 3.25]);
    let logged = "Test: [10/20] Loss 3.5 Acc@1 9.5\n2026-01-02 10:00:00 INFO  * Acc@1 9.25\n";
    assert_eq!(
        Sampled::read(&FORMAT, logged).values("eval.accuracy"),
        [0.095, 0.0925]
    );
    let bullets = "* step 1 loss 2.5\nval loss 3.0\n* step 2 loss 2.4\n* step 3 loss 2.3\n";
    assert_eq!(
        Sampled::read(&FORMAT, bullets).values("train.loss"),
        [2.5, 2.4, 2.3]
    );
}

#[test]
fn values_of_an_evaluation_under_other_names_are_kept() {
    let read = read(
        "step 100 loss 2.5\n[eval] step 5 bleu=31.5\nstep 200 loss 2.25\nstep 300 loss 2.0\nEpoch(val) [1][500] bbox_mAP: 0.41\n\
         Epoch(val) [1][50/500] time: 0.5\nEval Epoch: 2 set-val-top1: 0.25\nsaved step 300 with val_dice 7\n",
    );
    assert_eq!(read.values("train.custom"), [31.5, 0.41, 0.25]);
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0]);
}

#[test]
fn batches_of_an_evaluation_do_not_restart_the_training() {
    for batch in ["eval step", "[val] step", "eval | step"] {
        let line = |step: u32| {
            format!(
                "step {step}0 loss 2.{step}\nstep {step}5 loss 2.{step}\n{batch} 1 | loss 3.5\n{batch} 2 | loss 3.25\n"
            )
        };
        let read = read(&(1..4).map(line).collect::<String>());
        assert_eq!(
            read.values("train.global_step"),
            [10.0, 15.0, 20.0, 25.0, 30.0, 35.0],
            "{batch}"
        );
        assert_eq!(read.values("eval.loss").len(), 6, "{batch}");
    }
}

#[test]
fn results_that_are_fractions_do_not_begin_an_evaluation_loop() {
    for (accuracies, expected) in [("Test accuracy: 7500/10000 (75%)", 0.75), ("val acc 75%|", 0.75)] {
        let line = |epoch: u32| format!("Epoch {epoch}: train loss 2.{epoch}, {accuracies}, lr 0.1\n");
        let read = read(&(1..4).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
        assert_eq!(read.values("eval.accuracy"), [expected; 3]);
        assert_eq!(read.values("train.learning_rate"), [0.1; 3]);
    }
    let folds = read(
        "CV fold 1/5 | epoch 1 | loss 2.5\nCV fold 1/5 | epoch 2 | loss 2\nCV fold 1/5 | epoch 3 | loss 1\n",
    );
    assert_eq!(folds.values("train.loss"), [2.5, 2.0, 1.0]);
}

#[test]
fn a_sentence_about_validation_is_no_heading_of_an_evaluation() {
    for heading in [
        "Starting training with validation:",
        "Loading data and dev set:",
        "Next val at step 20:",
        "Loading test data...",
        "=== Testing GPU ===",
    ] {
        let read = read(&format!(
            "{heading}\n   step 1 loss 2.5\n   step 2 loss 2.25\n   step 3 loss 2\n"
        ));
        assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0], "{heading}");
    }
}

#[test]
fn word_before_a_dictionary_names_its_split() {
    let line = |epoch: u32| {
        format!(
            "train: {{'epoch': {epoch}, 'loss': 2.{epoch}, 'lr': 0.1, 'time_iter': 0.5}}\n\
             val: {{'epoch': {epoch}, 'loss': 3.{epoch}, 'time_iter': 0.25}}\n"
        )
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    assert_eq!(read.values("eval.loss"), [3.1, 3.2, 3.3]);
    assert_eq!(read.values("train.step.duration"), [0.5; 3]);
    assert_eq!(read.values("train.custom"), [0.25; 3]);
}

#[test]
fn headings_of_every_style_begin_an_evaluation() {
    for heading in [
        "Validating...",
        "***** Running evaluation *****",
        "==== Validation ====",
    ] {
        let line =
            |step: u32| format!("step {step} loss 2.{step}\n{heading}\n  loss: 3.{step} accuracy: 0.5\n");
        let read = read(&(1..4).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3], "{heading}");
        assert_eq!(read.values("eval.loss"), [3.1, 3.2, 3.3], "{heading}");
    }
}

#[test]
fn nested_values_of_a_marked_record_are_of_the_evaluation() {
    let line = |step: u32| {
        format!(
            "{{\"step\": {step}, \"split\": \"train\", \"metrics\": {{\"loss\": 2.{step}}}}}\n\
             {{\"step\": {step}, \"split\": \"test\", \"metrics\": {{\"loss\": 3.{step}}}, \"train_loss\": 4.{step}}}\n"
        )
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 4.1, 2.2, 4.2, 2.3, 4.3]);
    assert_eq!(read.values("eval.loss"), [3.1, 3.2, 3.3]);
}
