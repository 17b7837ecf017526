//! A user-defined format, which only the mapping describes, is read while the trainer prints.

use std::fs;

use pulsetrain_tests::{Folder, Items, wait_until};

use crate::run::world::{run, sent};

const MAPPING: &str = r"line: 'step (?<step>\d+) \| loss (?<train.loss>\S+) \| lr (?<train.learning_rate>\S+) \| (?<rate>\S+) tok/s'
values:
  - {key: rate, metric: train.throughput.tokens}
";

/// The trainer prints a step only after the test has found the previous one at the sink.
#[test]
fn each_step_of_a_custom_format_is_delivered_before_the_next_is_printed() {
    let folder = Folder::new();
    let (mapping, gate) = (folder.file("m.yaml", MAPPING), folder.path("gate"));
    let script = format!(
        "for loss in 2.31 2.25 2.18; do echo \"step 100 | loss $loss | lr 3e-4 | 1200 tok/s\"; while [ ! -e {}$loss ]; do sleep 0.02; done; done",
        gate.display()
    );
    let ours = run(&folder, "sh", &["-c", &script])
        .arg_of_ours("--format=keyvalue")
        .arg_of_ours(&format!("--mapping={}", mapping.display()))
        .spawn();
    let mut losses = Vec::new();
    for loss in [2.31, 2.25, 2.18] {
        losses.push(loss);
        wait_until("the sink has the step", || {
            let delivered = Items::read_complete_lines(&sent(&folder)).values("train.loss");
            delivered.iter().map(|(_, loss)| *loss).eq(losses.iter().copied())
        });
        fs::write(format!("{}{loss}", gate.display()), "").unwrap();
    }
    let output = ours.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let items = Items::read(&sent(&folder));
    assert_eq!(items.values("train.learning_rate").len(), 3);
    assert_eq!(items.values("train.throughput.tokens").len(), 3);
}
