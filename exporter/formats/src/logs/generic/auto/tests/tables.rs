//! CSV and tables with aligned columns.

use super::{FORMAT, read};
use crate::logs::sampled::Sampled;

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
