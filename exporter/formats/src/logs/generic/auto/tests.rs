use super::*;
use crate::logs::generic::suggest_mapping;
use crate::logs::sampled::Sampled;

mod programs;

fn read(text: &str) -> Sampled {
    assert!(agree(text.as_bytes()), "{text}");
    Sampled::read(&FORMAT, text)
}

#[test]
fn pipe_delimited_lines_with_units_are_parsed_without_configuration() {
    let read = read(
        "loading 3 shards\n\
         step 100 | loss 2.31 | lr 3e-4 | 1200 tok/s\n\
         step 200 | loss 2.25 | lr 2e-4 | 1.5k tok/s\n\
         saved checkpoint 200\n\
         step 300 | loss nan | lr 1e-4 | 1,210 tok/s\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0]);
    let losses = read.values("train.loss");
    assert!(losses[..2] == [2.31, 2.25] && losses[2].is_nan());
    assert_eq!(read.values("train.learning_rate"), [3e-4, 2e-4, 1e-4]);
    assert_eq!(read.values("train.throughput.tokens"), [1200.0, 1500.0, 1210.0]);
    assert_eq!(read.counts.records, 3);
}

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
fn dictionaries_and_nested_objects_are_parsed_without_configuration() {
    let read = read(
        "{'loss': 2.5, 'epoch': 0.1, 'step': 1}\n{'loss': 2.25, 'epoch': 0.2, 'step': 2}\n\
         {\"step\": 3, \"train\": {\"loss\": 2.0}, \"epoch\": 0.3}\n{'loss': 1.75, 'epoch': 0.4, 'step': 4}\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0, 1.75]);
    assert_eq!(read.values("train.epoch"), [0.1, 0.2, 0.3, 0.4]);
}

#[test]
fn empty_cells_of_a_table_are_absent() {
    let read = read("epoch,step,train_loss,val_loss\n0,9,2.5,\n0,19,2.25,\n0,19,,2.75\n1,29,2,\n");
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("eval.loss"), [2.75]);
    assert!(!read.skipped.has_losses(), "{:?}", read.skipped.problems());
}

#[test]
fn unnamed_index_column_is_skipped() {
    let read = read(",step,loss\n0,10,2.5\n1,20,2.25\n2,30,2.0\n");
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn text_of_other_programs_is_not_detected() {
    for text in [
        "10.0.0.1 - - [10/Oct/2026:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 2326\n".repeat(9),
        "for step in range(100):\n    loss = 0.5\n    lr = 0.1\n".repeat(9),
        "learning_rate: 0.001\nbatch_size: 32\nmax_steps: 1000\nloss: mse\ndropout: 0.1\n".to_owned(),
        "Collecting torch==2.1\n  Downloading torch-2.1.whl (670.2 MB)\n 45% 300/670 MB 12.5 MB/s eta 0:00:30\n"
            .repeat(9),
        "Map:  45%|####5     | 45/100 [00:31<01:38,  1.44 examples/s]\r".repeat(9),
        "step 10 loss 2.5\nstep 20 loss 2.25\n".to_owned(),
        "step 10 loss 2.5\n".repeat(9),
        String::new(),
    ] {
        assert!(!agree(text.as_bytes()), "{text}");
    }
}

#[test]
fn few_matching_lines_in_prose_do_not_make_a_training_log() {
    let mut text = "step 10 loss 2.5\n".to_owned();
    for step in [20, 30, 40] {
        text.push_str(&"prose without any number\n".repeat(40));
        text.push_str(&format!("step {step} loss 2.25\n"));
    }
    assert!(!agree(text.as_bytes()));
}

#[test]
fn batch_counters_that_restart_each_epoch_become_global_steps() {
    let read = read(
        "Epoch 1/10 | Batch 100/500 | Loss 2.5\nEpoch 1/10 | Batch 400/500 | Loss 2.25\n\
         Epoch 2/10 | Batch 100/500 | Loss 2\nEpoch 3/10 | Batch 100/500 | Loss 1.75\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 400.0, 600.0, 1100.0]);
    assert_eq!(read.values("train.epoch"), [1.0, 1.0, 2.0, 3.0]);
}

#[test]
fn epoch_local_counter_without_a_total_continues_at_its_interval() {
    let read = read(
        "epoch 1 step 100 loss 2.5\nepoch 1 step 200 loss 2.25\nepoch 2 step 100 loss 2\nepoch 2 step 200 loss 1.75\n",
    );
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0, 400.0]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0, 1.75]);
    // From 0, as with `enumerate`.
    let from_zero = self::read(
        "epoch 0 | step 0 | loss 2.5\nepoch 0 | step 20 | loss 2.25\nepoch 1 | step 0 | loss 2\nepoch 1 | step 20 | loss 1.75\n",
    );
    assert_eq!(from_zero.values("train.global_step"), [0.0, 20.0, 40.0, 60.0]);
    // The interval is unknown, the last one is shorter, a run is resumed, and an epoch is missing.
    for (steps, known) in [
        (&[(0, 7), (1, 7), (2, 7)][..], 1),
        (&[(0, 100), (0, 200), (0, 201), (1, 100)], 3),
        (&[(0, 100), (0, 200), (0, 300), (1, 210)], 3),
        (&[(0, 100), (0, 200), (2, 100), (2, 200)], 2),
    ] {
        let line = |(epoch, step): &(u32, u32)| format!("epoch {epoch} | step {step} | loss 2.5\n");
        let read = Sampled::read(&FORMAT, &steps.iter().map(line).collect::<String>());
        let all: Vec<f64> = steps.iter().map(|(_, step)| f64::from(*step)).collect();
        assert_eq!(read.values("train.global_step"), all[..known], "{steps:?}");
    }
    let batches = "epoch 1 batch 100 loss 2.5\nepoch 1 batch 200 loss 2.25\nepoch 2 batch 100 loss 2\n";
    let batches = Sampled::read(&FORMAT, batches);
    assert_eq!(batches.values("train.global_step"), [100.0, 200.0, 300.0]);
    assert!(batches.values("train.custom").is_empty());
}

#[test]
fn per_device_throughput_is_not_recorded_as_total_throughput() {
    let read = read(
        "step=1 loss=2 perf/tokens_per_sec_per_gpu=100 perf/tflops=250\n\
         step=2 loss=1.5 perf/tokens_per_second_per_device=200 tflops=300\n\
         step=3 loss=1.25 perf/tokens_per_second_per_device=200 tflops=300\n",
    );
    assert!(read.values("train.throughput.tokens").is_empty());
    assert_eq!(
        read.values("train.throughput.tokens_per_device"),
        [100.0, 200.0, 200.0]
    );
    assert_eq!(
        read.values("train.throughput.flops_per_device"),
        [2.5e14, 3e14, 3e14]
    );
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
fn time_without_a_unit_is_not_a_step_duration() {
    let custom = |time: &str, unit: &str| {
        let line = |step| format!("step {step} loss 2.{step} | {time}{step}{unit}\n");
        let read = read(&(1..5).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3, 2.4]);
        read.values("train.custom")
    };
    assert_eq!(custom("time=12", ""), [121.0, 122.0, 123.0, 124.0]);
    assert_eq!(custom("time: 12:30:0", ""), [0.0; 0]);
    assert_eq!(custom("eval took 35", " ms"), [351.0, 352.0, 353.0, 354.0]);
    // Those are durations of steps.
    assert_eq!(custom("time 12", "ms"), [0.0; 0]);
    assert_eq!(custom("data_time 0.5 time 12", ""), [0.0; 0]);
}

#[test]
fn tables_with_aligned_columns_are_read() {
    let read = read(
        "the loss goes down\nepoch     train_loss  valid_loss  accuracy  time    \n\
         0         2.5         2.75        0.5       00:12     \n\
         1         2.25        2.5         0.6       00:12     \n\
         saved the best model\n\
         2         2.0         2.25        0.7       00:12     \n",
    );
    assert_eq!(read.values("train.epoch"), [0.0, 1.0, 2.0]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("eval.loss"), [2.75, 2.5, 2.25]);
    let bars = self::read(
        "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n\
         \x20       1/3      2.1G      1.25      1.5         10        640: 100%|####| 4/4 [00:01<00:00,  2.5it/s]\n\
         \x20       2/3      2.1G      1.0      1.25         10        640: 100%|####| 4/4 [00:01<00:00,  2.5it/s]\n\
         \x20       3/3      2.1G      0.75      1.0         10        640: 100%|####| 4/4 [00:01<00:00,  2.5it/s]\n",
    );
    assert_eq!(bars.values("train.epoch"), [1.0, 2.0, 3.0]);
    assert_eq!(bars.values("train.custom")[1..3], [1.25, 1.5]);
}

#[test]
fn line_with_loss_fields_of_any_name_is_a_record() {
    let read = read(
        "[0/5][0/15]\tLoss_D: 1.5\tLoss_G: 5.5\n[0/5][5/15]\tLoss_D: 1.25\tLoss_G: 5.25\n[0/5][10/15]\tLoss_D: 1\tLoss_G: 5\n",
    );
    assert_eq!(read.values("train.custom"), [1.5, 5.5, 1.25, 5.25, 1.0, 5.0]);
}

#[test]
fn step_numbers_with_a_k_suffix_are_parsed() {
    let read = read("step 1k loss 2.5\nstep 1.5k loss 2.25\nstep 2k loss 2\n");
    assert_eq!(read.values("train.global_step"), [1000.0, 1500.0, 2000.0]);
}

#[test]
fn second_number_of_a_metric_is_kept_as_custom_without_becoming_the_metric() {
    let two_keys = read(
        "step 1 loss 2.5 train_acc: 45.5% acc: 47.0%\nstep 2 loss 2.25 acc: 48.0%\nstep 3 loss 2 acc: 49.0%\n",
    );
    assert_eq!(two_keys.values("train.accuracy"), [0.455]);
    assert_eq!(two_keys.values("train.custom"), [47.0, 48.0, 49.0]);
    // The same key twice in one record does not change the key's later values.
    let one_key = read("step 1 loss 2.5 loss 9\nstep 2 loss 2.25\nstep 3 loss 2\n");
    assert_eq!(one_key.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(one_key.values("train.custom"), [9.0]);
}

#[test]
fn key_with_the_name_of_its_metric_takes_precedence() {
    let read = read(
        "step 1 cross_entropy_loss 2.1 loss 2.2\nstep 2 cross_entropy_loss 2.0 loss 2.1\nstep 3 cross_entropy_loss 1.9 loss 2\n",
    );
    assert_eq!(read.values("train.loss"), [2.2, 2.1, 2.0]);
    assert_eq!(read.values("train.custom"), [2.1, 2.0, 1.9]);
    let alone = self::read(
        "{'step_loss': 0.5, 'lr': 0.1}\n{'step_loss': 0.25, 'lr': 0.1}\n{'step_loss': 0.125, 'lr': 0.1}\n",
    );
    assert_eq!(alone.values("train.loss"), [0.5, 0.25, 0.125]);
}

#[test]
fn rate_with_another_label_is_not_the_throughput_of_training() {
    let line = |step: u32| {
        format!("step {step} | loss 2.{step} | prefill speed: 5000 tok/s | tokens per second 1000\n")
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.throughput.tokens"), [1000.0; 3]);
    assert_eq!(read.values("train.custom"), [5000.0; 3]);
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
fn line_of_the_source_is_no_value() {
    for prefix in [
        "2026-01-02 12:00:00.5 | INFO     | train:main:42 - ",
        "[gpu01] 2026-01-02 12:00:00,123 (trainer:737) INFO: ",
    ] {
        let line = |step: u32| format!("{prefix}step=1{step} loss=2.{step}\n");
        let read = Sampled::read(&FORMAT, &(1..4).map(line).collect::<String>());
        assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3], "{prefix}");
        assert!(read.values("train.custom").is_empty(), "{prefix}");
    }
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
    let bullets = "* step 1 loss 2.5\nval loss 3.0\n* step 2 loss 2.4\n* step 3 loss 2.3\n";
    assert_eq!(
        Sampled::read(&FORMAT, bullets).values("train.loss"),
        [2.5, 2.4, 2.3]
    );
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
fn numbers_with_neighbouring_labels_keep_their_own() {
    let read = read(
        "INFO:root:step = 1, Speed: 1010.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.5\n\
         INFO:root:step = 2, Speed: 1012.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.25 (4500/10000) 7/9\n\
         INFO:root:step = 3, Speed: 1014.5 samples/sec, 621.3 lr: 0.001, 17.5 loss: 2.0\n",
    );
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("train.throughput.samples"), [1010.5, 1012.5, 1014.5]);
    assert_eq!(read.values("train.learning_rate"), [0.001; 3]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert!(read.values("train.epoch").is_empty());
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn counts_with_a_k_suffix_and_times_of_epochs_are_kept_as_custom() {
    let read = read(
        "epoch 1: loss 2.5, time 62.5s, fps 1.5k\nepoch 2: loss 2.25, time 61.5s, fps 1.25k\nepoch 3: loss 2, time 61s, fps 1k\n",
    );
    assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0]);
    assert_eq!(
        read.values("train.custom"),
        [62.5, 1500.0, 61.5, 1250.0, 61.0, 1000.0]
    );
    assert!(read.values("train.step.duration").is_empty());
}

#[test]
fn estimate_without_a_value_is_not_measured() {
    let read = read(
        "step 1 | loss 2.5 | 12.5ms | mfu -100.00%\nstep 2 | loss 2.25 | 12.5ms | mfu 40.00%\nstep 3 | loss 2 | 12.5ms | mfu 41.00%\n",
    );
    assert_eq!(read.values("train.mfu"), [0.4, 0.41]);
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn values_in_lines_below_a_heading_belong_to_its_step() {
    let block = |step: u32, loss: f64| {
        format!(
            "2026-11-20 10:00:0{step} olmo:967 INFO [step={step}/1000,epoch=0]\n    train/CrossEntropyLoss={loss}\n    \
             throughput/device/tokens_per_second=23,46{step}\n    optim/norm_of_blocks=1.5\n"
        )
    };
    let read = read(&(1..4).map(|step| block(step, 2.5)).collect::<String>());
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("train.epoch"), [0.0; 3]);
    assert_eq!(read.values("train.loss"), [2.5; 3]);
    assert_eq!(read.values("train.custom").len(), 6);
    // A sentence is not a heading, and a line with its own step ends a block.
    let sentence = "Saving checkpoint at step 3/1000\n  Uploaded 3 files\nGPU temperature: 71\n";
    assert_eq!(Sampled::read(&FORMAT, sentence).counts.records, 0);
    let steps = "[step=3/1000]\n  loss: 2.5\n  step: 4\n  loss: 2.25\n";
    assert_eq!(Sampled::read(&FORMAT, steps).values("train.global_step"), [3.0]);
}

#[test]
fn tables_of_stable_baselines_are_read() {
    let table = |iteration: u32| {
        format!(
            "-----\n| rollout/     |     |\n|    ep_rew_mean | 6{iteration} |\n| time/ |   |\n|    fps | 1127 |\n\
             |    iterations | {iteration} |\n| train/ | |\n|    loss | 2.5 |\n|    value_loss | 1.5e+02 |\n-----\n"
        )
    };
    let read = read(&(1..4).map(table).collect::<String>());
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("rl.trajectory_reward"), [61.0, 62.0, 63.0]);
    assert_eq!(read.values("rl.value_loss"), [150.0; 3]);
    assert_eq!(read.values("train.custom"), [1127.0; 3]);
    let evaluation = "| eval/ |  |\n|    mean_reward | 210 |\n|    loss | 9 |\n";
    assert!(
        Sampled::read(&FORMAT, evaluation)
            .values("rl.trajectory_reward")
            .is_empty()
    );
    assert_eq!(Sampled::read(&FORMAT, evaluation).values("eval.loss"), [9.0]);
    // A table of settings has no sections.
    let settings = "| loss | 1 |\n| steps | 1000 |\n";
    assert_eq!(Sampled::read(&FORMAT, settings).counts.records, 0);
}

#[test]
fn text_in_brackets_belongs_to_the_label_before_it() {
    let read = read(
        "step 1 | Acc (%): 50 time (sec): 0.5 Loss (avg) 2.5 lr (x1e-4): 1.1 Val loss (mean): 3.5 loss (val): 9.5\n\
         step 2 | Acc (%): 52 time (sec): 0.25 Loss (avg) 2.25 lr (x1e-4): 1.0 Val loss (mean): 3.25 loss (val): 9.25\n\
         step 3 | Acc (%): 50 time (sec): 0.5 Loss (avg) 2.0 lr (x1e-4): 0.9 Val loss (mean): 3.0 loss (val): 9.0\n",
    );
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("eval.loss"), [3.5, 3.25, 3.0]);
    assert_eq!(read.values("train.accuracy"), [0.5, 0.52, 0.5]);
    assert!(read.values("train.learning_rate").is_empty());
    // The time since the start of the epoch, and a second value of a metric.
    assert_eq!(
        read.values("train.custom"),
        [0.5, 1.1, 9.5, 0.25, 1.0, 9.25, 0.5, 0.9, 9.0]
    );
}

#[test]
fn number_between_a_label_and_its_value_is_an_index() {
    let line = |step: u32| {
        format!("Train loss {step} 2.{step} Grad Norm 1.5 2.5s/it\nValidation loss {step}:  3.{step}\n")
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    assert_eq!(read.values("eval.loss"), [3.1, 3.2, 3.3]);
    assert_eq!(read.values("train.grad_norm"), [1.5; 3]);
    // Two values of one metric.
    let both = self::read("step 1 acc 0.5 0.5\nstep 2 acc 0.75 0.5\nstep 3 acc 1.0 0.75\n");
    assert_eq!(both.values("train.accuracy"), [0.5, 0.75, 1.0]);
}

#[test]
fn rate_of_data_is_no_duration() {
    let read = read(
        "step 1 loss 2.5, FW: 3.5 s, BW: 412.5 GB/sec\nstep 2 loss 2.25, FW: 3 s, BW: 410 GB/sec\n\
         step 3 loss 2, FW: 3 s, BW: 411 GB/sec\n",
    );
    assert_eq!(read.values("perf.forward_time"), [3.5, 3.0, 3.0]);
    assert!(read.values("perf.backward_time").is_empty());
    // The words after a number can be the next label.
    let label = self::read(
        "step 1 loss 2.5 step_time 0.5 tok/s 1201\nstep 2 loss 2.25 step_time 0.25 tok/s 1202\n\
         step 3 loss 2 step_time 0.5 tok/s 1203\n",
    );
    assert_eq!(label.values("train.step.duration"), [0.5, 0.25, 0.5]);
}

#[test]
fn printed_settings_are_no_record() {
    let read = read(
        "Namespace(device=0, log_steps=1, lr=0.01, epochs=500, betas=(0.9, 0.99), loss=0.5)\n\
         step 10 loss 2.5 lr 0.1\nstep 20 loss 2.25 lr 0.1\nstep 30 loss 2 lr 0.1\n",
    );
    assert_eq!(read.values("train.global_step"), [10.0, 20.0, 30.0]);
    assert_eq!(read.values("train.learning_rate"), [0.1; 3]);
    let metrics = self::read(
        "Metrics(step=1, loss=2.5, acc=0.5)\nMetrics(step=2, loss=2.25, acc=0.5)\nMetrics(step=3, loss=2, acc=0.5)\n",
    );
    assert_eq!(metrics.values("train.loss"), [2.5, 2.25, 2.0]);
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
fn aligned_total_of_a_count_is_read() {
    let read = read(
        "| epoch   1 |   200/  400 batches | loss 2.5\n| epoch   1 |   400/  400 batches | loss 2.25\n\
         | epoch   2 |   200/  400 batches | loss 2.0\n",
    );
    assert_eq!(read.values("train.global_step"), [200.0, 400.0, 600.0]);
}

#[test]
fn lower_number_of_another_counter_is_no_step() {
    let read = read(
        "iter 10: loss 2.5\niter 20: loss 2.25\nstep 2: val loss 2.75\niter 30: loss 2.0\niter 40: loss 1.75\n\
         step 4: val loss 2.5\niter 50: loss 1.5\n",
    );
    assert_eq!(read.values("train.global_step"), [10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(read.values("eval.loss"), [2.75, 2.5]);
    // A restart has more than one lower number in a row.
    let restarted = self::read(
        "global_step=50 loss=1.5\nstep=1 loss=2.5\nstep=2 loss=2.25\nstep=3 loss=2.0\nstep=4 loss=1.75\n",
    );
    assert_eq!(restarted.values("train.global_step"), [50.0, 2.0, 3.0, 4.0]);
    let both = self::read(
        "iter 10 loss 2.5\niter 20 loss 2.25\nstep 2 iter 30 loss 2.0\nstep 3 iter 40 loss 1.75\n",
    );
    assert_eq!(both.values("train.global_step"), [10.0, 20.0, 30.0, 40.0]);
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

#[test]
fn text_under_a_key_of_a_metric_is_kept_in_the_event() {
    let line = |step: u32| format!("{{\"step\": {step}, \"loss\": 2.{step}, \"train_loss\": \"pending\"}}\n");
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.counts.events, 3);
}

#[test]
fn suggested_mapping_has_one_row_for_a_metric_of_two_keys() {
    let log = "step 1 train_loss 2.5\nstep 2 train_loss 2.25 loss 2.0\nstep 3 train_loss 2.0 loss 1.75\n";
    let mapping = suggest_mapping("x.log", log.as_bytes()).unwrap();
    assert!(
        mapping.contains("\n  - {key: loss, metric: train.loss}"),
        "{mapping}"
    );
    assert!(
        mapping.contains("\n  # - {key: train_loss, metric: }"),
        "{mapping}"
    );
}
