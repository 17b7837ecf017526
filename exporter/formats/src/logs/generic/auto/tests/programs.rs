//! Logs in the form of single programs: mmengine, pytorch-cifar, Keras, fairseq, icefall, wenet, LeRobot, ESPnet, clu, pandas.

use super::*;
use crate::logs::sampled::reasons;
use crate::logs::{ReadTime, generic::suggest_mapping};
use pulsetrain_mapping::MappingFile;
use pulsetrain_record::SkipReason;
use std::sync::Arc;

#[test]
fn counters_with_their_split_in_brackets_are_of_training_or_of_an_evaluation() {
    let train =
        |step: u32| format!("Epoch(train) [1][{step}0/30]  time: 0.5  data_time: 0.25  loss: 2.{step}\n");
    let evaluation = "Epoch(val)   [1][ 50/250]    eta: 0:00:12  time: 0.05  data_time: 0.01  memory: 1200\n\
                      Epoch(val) [1][250/250]    accuracy/top1: 76.5  accuracy/top5: 93.0  time: 0.05\n\
                      Epoch(test) [ 50/250]    time: 0.05\nEpoch(train) [2][10/30]  loss: 2.0\n";
    let text = (1..4).map(train).collect::<String>() + evaluation;
    let epochs = read(&text);
    assert_eq!(epochs.values("train.global_step"), [10.0, 20.0, 30.0, 40.0]);
    assert_eq!(epochs.values("train.epoch"), [1.0, 1.0, 1.0, 1.0, 2.0]);
    assert_eq!(epochs.values("train.step.duration"), [0.5; 3]);
    assert_eq!(epochs.values("eval.accuracy"), [0.765]);
    assert_eq!(epochs.values("train.custom"), [93.0, 0.05]);
    let iterations = read(
        "Iter(train) [  50/80000]  loss: 2.5\nIter(train) [ 100/80000]  loss: 2.25\nIter(train) [ 150/80000]  loss: 2.0\n\
         Iter(val) [ 50/500]    time: 0.05\nIter(val) [500/500]    mIoU: 77.4\n",
    );
    assert_eq!(iterations.values("train.global_step"), [50.0, 100.0, 150.0]);
    assert_eq!(iterations.values("train.custom"), [77.4]);
}

#[test]
fn second_bar_of_an_epoch_is_of_an_evaluation() {
    let bar = |loss: f64, (done, total): (u32, u32)| {
        format!(
            " [===>...]  Step: 12ms | Tot: 1s | Loss: {loss} | Acc: 45.5% ({done}/{total})    \u{8}\u{8} {done}/{total} \r"
        )
    };
    let epoch = |number: u32| {
        let bars = [
            (2.5, (100, 391)),
            (2.25, (391, 391)),
            (3.5, (1, 100)),
            (3.25, (100, 100)),
        ];
        let bars = bars.map(|(loss, count)| bar(loss, count));
        format!("\nEpoch: {number}\n{}\nSaving..\n", bars.concat())
    };
    let cifar = read(&(0..2).map(epoch).collect::<String>());
    assert_eq!(cifar.values("train.global_step"), [100.0, 391.0, 491.0, 782.0]);
    assert_eq!(cifar.values("train.loss"), [2.5, 2.25, 2.5, 2.25]);
    assert_eq!(cifar.values("eval.loss"), [3.5, 3.25, 3.5, 3.25]);
    assert_eq!(cifar.values("eval.accuracy"), [0.455; 4]);
    let keras = "Epoch 1/2\n938/1875 ━━ 3s 250ms/step - accuracy: 0.5 - loss: 2.5\r1875/1875 ━━ 3s 250ms/step - accuracy: 0.5 - loss: 2.25\n\
                 Epoch 2/2\n1875/1875 ━━ 3s 250ms/step - accuracy: 0.5 - loss: 2.0\n\
                 40/79 ━━ 1s 3ms/step - accuracy: 0.75 - loss: 3.0\r79/79 ━━ 1s 3ms/step - accuracy: 0.75 - loss: 3.5\n";
    let keras = Sampled::read(crate::format_by_name("keras").unwrap(), keras);
    assert_eq!(keras.values("train.global_step"), [938.0, 1875.0, 3750.0]);
    assert_eq!(keras.values("eval.loss"), [3.0, 3.5]);
    assert_eq!(keras.values("eval.accuracy"), [0.75; 2]);
    assert_eq!(keras.values("train.step.duration"), [0.25; 3]);
}

#[test]
fn scores_of_every_evaluation_set_of_catboost_are_kept() {
    let log = "0:\ttest: 0.5\ttest1: 0.6\ttest2: 0.7\ttest3: 0.8\ttotal: 47.5ms\tremaining: 0us\n";
    let catboost = Sampled::read(crate::format_by_name("catboost").unwrap(), log);
    assert_eq!(catboost.values("train.custom"), [0.5, 0.6, 0.7, 0.8]);
}

#[test]
fn shorter_bar_in_a_log_without_epochs_is_no_step_and_is_reported() {
    let bar = |(done, total): (u32, u32)| format!("{done}/{total} [00:01<00:02, 2.5it/s, loss=2.{done}]\r");
    let bars = [(1, 4), (4, 4), (1, 2), (2, 2), (1, 4), (4, 4)];
    let read = read(&bars.map(bar).concat());
    assert_eq!(read.values("train.global_step"), [1.0, 4.0, 5.0, 8.0]);
    assert_eq!(read.values("train.loss"), [2.1, 2.4, 2.1, 2.2, 2.1, 2.4]);
    let ignored = SkipReason::Ignored("count_of_another_loop");
    assert_eq!(reasons(&read.skipped), [(ignored, 2)]);
}

#[test]
fn wall_of_fairseq_is_the_elapsed_time_in_any_order() {
    let line = |step: u32| {
        let (wall, train_wall) = (
            format!("\"wall\": \"{step}0\""),
            format!("\"train_wall\": \"{step}\""),
        );
        let (first, second) = if step == 2 {
            (&wall, &train_wall)
        } else {
            (&train_wall, &wall)
        };
        format!(
            "INFO | train_inner | {{\"loss\": \"2.{step}\", \"num_updates\": \"{step}\", {first}, {second}}}\n"
        )
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.elapsed_time"), [10.0, 20.0, 30.0]);
    assert_eq!(read.values("train.custom"), [1.0, 2.0, 3.0]);
}

#[test]
fn first_number_above_one_shows_that_a_series_is_in_percent() {
    let line = |(step, accuracy): (u32, f64)| format!("step {step} loss 2.5 acc {accuracy} val_acc 0.5\n");
    let read = read(&[(1, 0.5), (2, 25.0), (3, 0.5), (4, 50.0)].map(line).concat());
    assert_eq!(read.values("train.accuracy"), [0.5, 0.25, 0.005, 0.5]);
    assert_eq!(read.values("eval.accuracy"), [0.5; 4]);
    // The mean of 32-bit numbers.
    let rounded = self::read(&[(1, 1.0000001), (2, 0.5), (3, 0.75)].map(line).concat());
    assert_eq!(rounded.values("train.accuracy"), [1.0000001, 0.5, 0.75]);
}

#[test]
fn batches_and_losses_of_icefall_are_read() {
    let head = "2026-01-01 12:00:00,123 INFO [train.py:893] (0/8) Epoch";
    let line = |(epoch, batch): (u32, u32)| {
        format!(
            "{head} {epoch}, batch {batch}, loss[loss={epoch}.5, ctc_loss=0.5, over 10.00 frames. ], \
             tot_loss[loss={epoch}.25, ctc_loss=0.75, over 90.00 frames. ], batch size: 30, lr: 3.00e-03\n"
        )
    };
    let batches = [(1, 0), (1, 50), (2, 0), (2, 50)].map(line).concat();
    let read = read(&format!(
        "{batches}{head} 2, validation: loss=3.5, ctc_loss=3.25, over 9.00 frames. \n"
    ));
    assert_eq!(read.values("train.global_step"), [0.0, 50.0, 100.0, 150.0]);
    assert_eq!(read.values("train.loss"), [1.5, 1.5, 2.5, 2.5]);
    assert_eq!(read.values("eval.loss"), [3.5]);
    assert_eq!(read.values("train.batch_size"), [30.0; 4]);
    let mapping = suggest_mapping("x.log", batches.as_bytes(), ReadTime::default()).unwrap();
    let mapping = MappingFile::parse(&mapping).unwrap().build().unwrap();
    let mapped = Sampled::read_mapped(&FORMAT, &Arc::new(mapping), &batches);
    assert_eq!(
        mapped.values("train.global_step"),
        read.values("train.global_step")
    );
    let names = read.attributes("train.custom");
    let is_of = |name: &str| {
        names
            .iter()
            .filter(|found| found.ends_with(&format!("={name}")))
            .count()
    };
    for (name, count) in [
        ("ctc_loss", 4),
        ("tot_loss.loss", 4),
        ("tot_loss.ctc_loss", 4),
        ("eval ctc_loss", 1),
    ] {
        assert_eq!(is_of(name), count, "{name}: {names:?}");
    }
}

#[test]
fn fraction_whose_second_number_counts_is_an_epoch_and_a_batch() {
    for prefix in ["DEBUG TRAIN ", "DEBUG TRAIN | steps/sec 0.5| "] {
        let line =
            |(epoch, batch): (u32, u32)| format!("{prefix}Batch {epoch}/{batch} loss 2.5 lr 0.1 rank 0\n");
        let evaluation = prefix.replace("TRAIN", "CV");
        let read = read(&format!(
            "{}{evaluation}Batch 0/0 loss 3.5\n{evaluation}Batch 0/100 loss 3.25\n{}",
            [(0, 0), (0, 100), (0, 200)].map(line).concat(),
            [(1, 0), (1, 100)].map(line).concat()
        ));
        assert_eq!(
            read.values("train.global_step"),
            [0.0, 100.0, 200.0, 300.0, 400.0],
            "{prefix}"
        );
        assert_eq!(read.values("train.epoch"), [0.0, 0.0, 1.0, 1.0], "{prefix}");
        assert_eq!(read.values("eval.loss"), [3.5, 3.25], "{prefix}");
    }
}

#[test]
fn numbers_with_labels_of_many_words_are_kept_as_custom() {
    let line = |step: u32| format!("step {step} loss 2.5 time since the last checkpoint 35.{step}\n");
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.custom"), [35.1, 35.2, 35.3]);
    assert_eq!(
        read.attributes("train.custom")[0],
        "train.custom.name=time since the last checkpoint"
    );
}

#[test]
fn truncated_object_in_a_log_of_objects_is_counted_as_malformed() {
    let line = |step: u32| format!("{{\"step\": {step}, \"loss\": 2.{step}}}\n");
    let text = (1..4).map(line).collect::<String>();
    let settings = "{'batch_size': 32,\n 'lr': 0.1}\n";
    let read = read(&format!(
        "{text}{{\"step\": 4, \"loss\": 2\n{settings}{{\"step\": 4, \"lo{}",
        line(5)
    ));
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    // The numbers of the settings are in an object without a step.
    let unused = SkipReason::Ignored("line_without_usual_key");
    assert_eq!(
        reasons(&read.skipped),
        [(SkipReason::MalformedRecord, 2), (unused, 2)]
    );
}

#[test]
fn short_keys_and_counts_of_lerobot_are_read() {
    let read = read(
        "step:200 smpl:2K ep:3 epch:0.25 loss:6.5 grdn:120.5 lr:1.0e-05 updt_s:0.125 data_s:0.25\n\
         step:400 smpl:3K ep:6 epch:0.5 loss:3.5 grdn:80.5 lr:1.0e-05 updt_s:0.125 data_s:0.25\n\
         step:1K smpl:8K ep:12 epch:0.75 loss:1.25 grdn:60.5 lr:1.0e-05 updt_s:0.125 data_s:0.25\n",
    );
    assert_eq!(read.values("train.global_step"), [200.0, 400.0, 1000.0]);
    assert_eq!(read.values("train.samples"), [2000.0, 3000.0, 8000.0]);
    assert_eq!(read.values("train.epoch"), [0.25, 0.5, 0.75]);
    assert_eq!(read.values("train.grad_norm"), [120.5, 80.5, 60.5]);
    assert_eq!(read.values("train.step.duration"), [0.125; 3]);
    assert_eq!(read.values("perf.data_time"), [0.25; 3]);
    assert_eq!(read.values("train.custom"), [3.0, 6.0, 12.0]);
}

#[test]
fn iter_time_next_to_the_forward_time_is_no_step_duration() {
    let line =
        |step: u32| format!("step={step}, iter_time=0.12{step}, FORWARDloss=2.{step}, train_time=1.5\n");
    let times = |forward: &str| {
        let text = (1..4).map(line).collect::<String>().replace("FORWARD", forward);
        let read = read(&text);
        (
            read.values("train.step.duration").len(),
            read.values("train.custom"),
        )
    };
    assert_eq!(times(""), (3, vec![1.5; 3]));
    assert_eq!(
        times("forward_time=0.25, "),
        (0, vec![0.121, 1.5, 0.122, 1.5, 0.123, 1.5])
    );
}

#[test]
fn number_between_the_place_in_the_source_and_the_values_is_the_step() {
    let line = |step: u32| {
        format!(
            "I0101 12:00:00.123456 140001 logging_writer.py:48] [{step}00] learning_rate=0.1, loss=2.{step}\n"
        )
    };
    let read = read(&(1..4).map(line).collect::<String>());
    assert_eq!(read.values("train.global_step"), [100.0, 200.0, 300.0]);
    assert_eq!(read.values("train.loss"), [2.1, 2.2, 2.3]);
    assert!(read.values("train.custom").is_empty());
}

#[test]
fn index_of_a_printed_pandas_table_is_no_value() {
    let read = read(
        "   epoch  train_loss  accuracy\n0      1        2.50      0.50\n1      2        2.25      0.60\n2      3        2.00      0.70\n",
    );
    assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0]);
    assert_eq!(read.values("train.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("train.accuracy"), [0.5, 0.6, 0.7]);
}
