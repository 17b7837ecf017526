//! CSV and tables with aligned columns.

use super::{FORMAT, agree, read};
use crate::logs::sampled::{Sampled, reasons};
use pulsetrain_record::SkipReason;

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
    assert_eq!(read.values("eval.accuracy"), [0.5, 0.6, 0.7]);
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
fn tables_with_a_rule_or_bars_are_read() {
    for log in [
        "E    #     LOSS KL    CER   NOTE\n---  ----  ---------  ----  ----\n  0     0       2.50  9.50\n  0    50       2.25  9.25   +\n\
           1   100       2.00  9.00\n",
        " Epoch | Step | loss kl   | CER\n-------+------+-----------+-----\n     0 |    0 |       2.5 | 9.5\n     0 |   50 |      2.25 |    \n\
         \x20    1 |  100 |       2.0 | 9.0\n",
        "| Epoch | Step | loss_kl | CER |\n|------:|:-----|-----------|-----|\n| 0 | 0 | **2.5** | 9.5 |\n| 0 | 50 | 2.25 | 9.25 |\n\
         | Epoch | Step | loss_kl | CER |\n| 1 | 100 | 2.0 | 9.0 |\n",
        "╔═══════╦══════╦═══════════╦═════╗\n║ Epoch ║ Step ║ loss_kl ║ CER ║\n╠═══════╬══════╬═══════════╬═════╣\n\
         ║ 0/2   ║ 0    ║ 2.5       ║ 9.5 ║\n║ 0/2   ║ 50   ║ 2.25      ║     ║\n║ 1/2   ║ 100  ║ 2.0       ║ 9.0 ║\n╚═══════╩══════╩═══════════╩═════╝\n",
        "epoch  iter   main/loss_kl   validation/main/acc\r\n0      0      2.5              0.5\r\n0      50     2.25             0.5\r\n\
         1      100    2.0              0.5\r\n",
        "Epoch    Global Step    Loss KL\n0        0              2.5\n0        50             2.25\n1        100            2.0\n",
    ] {
        let read = read(log);
        assert_eq!(read.values("train.global_step"), [0.0, 50.0, 100.0], "{log}");
        assert_eq!(read.values("train.epoch"), [0.0, 0.0, 1.0], "{log}");
        assert_eq!(read.values("train.loss_component"), [2.5, 2.25, 2.0], "{log}");
    }
}

#[test]
fn two_column_tables_are_one_record_each() {
    let table =
        |epoch: u32| format!("------\n| Epoch | {epoch} |\n| kl | 0.{epoch} |\n| StdRet | 2.1 |\n------\n");
    let read = read(&(1..5).map(table).collect::<String>());
    assert_eq!(read.values("train.epoch"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.values("rl.kl"), [0.1, 0.2, 0.3, 0.4]);
    assert_eq!(read.counts.records, 4);
    // Without a step, a table is a record from the second time on.
    let table = |kl: u32| format!("+----+\n| kl | 0.{kl} |\n| entropy | 1.{kl} |\n+----+\n");
    let read = self::read(&(1..6).map(table).collect::<String>());
    assert_eq!(read.values("rl.kl"), [0.2, 0.3, 0.4, 0.5]);
    assert_eq!(
        reasons(&read.skipped),
        [(SkipReason::Ignored("table_without_step"), 2)]
    );
}

#[test]
fn grid_of_pairs_belongs_to_the_step_above_it() {
    let grid = |step: u32| {
        format!(
            "INFO: Epoch 1/3 Step {step}/9 done.\nINFO: Stats (1/1):\n┌──────┬──────┬──────┬──────┐\n│ net/policy_loss │ 1.{step}e-01 │ net/lr │ 1e-3 │\n\
             ├──────┼──────┼──────┼──────┤\n│ net/return/max │ 3 │  │  │\n└──────┴──────┴──────┴──────┘\n"
        )
    };
    let read = read(&(1..5).map(grid).collect::<String>());
    assert_eq!(read.values("train.global_step"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read.values("rl.policy_loss"), [0.11, 0.12, 0.13, 0.14]);
    assert_eq!(read.values("train.learning_rate"), [0.001; 4]);
    assert_eq!(read.values("train.custom"), [3.0; 4]);
}

#[test]
fn runs_in_one_table_never_share_a_series() {
    let table = |step: u32| {
        format!(
            "+------+------+------+\n| Trial | iter | loss |\n|------+------+------|\n| fox_1 | {step} | 2.{step} |\n| owl_2 | {step} | 3.{step} |\n\
             +------+------+------+\n"
        )
    };
    let charts = "\"Step\",\"fox - train/loss\",\"owl - train/loss\"\n\"1\",\"2.5\",\"3.5\"\n\"2\",\"2.25\",\"3.25\"\n\"3\",\"2.0\",\"3.0\"\n";
    for (log, values) in [
        ((1..4).map(table).collect::<String>(), 12),
        (charts.to_owned(), 6),
    ] {
        let read = read(&log);
        assert!(read.values("train.loss").is_empty(), "{log}");
        assert!(read.values("train.loss_component").is_empty(), "{log}");
        assert_eq!(read.values("train.custom").len(), values, "{log}");
    }
    let splits = |epoch: u32| {
        format!(
            "| | loss | acc |\n|---|---|---|\n| train | 2.{epoch} | 0.5 |\n| valid | 3.{epoch} | 0.25 |\n"
        )
    };
    let splits = read(&(1..4).map(splits).collect::<String>());
    assert_eq!(splits.values("train.loss"), [2.1, 2.2, 2.3]);
    assert_eq!(splits.values("eval.loss"), [3.1, 3.2, 3.3]);
}

#[test]
fn chart_of_one_run_has_the_metric_without_the_run() {
    let chart = "Step,calm-sea-3 - eval/loss,calm-sea-3 - eval/loss__MIN,calm-sea-3 - eval/loss__MAX\n5,2.5,2,3\n10,2.25,2,3\n15,2.0,2,3\n";
    assert!(agree(chart.as_bytes()));
    let read = read(chart);
    assert_eq!(read.values("eval.loss"), [2.5, 2.25, 2.0]);
    assert_eq!(read.values("train.custom").len(), 6);
}
