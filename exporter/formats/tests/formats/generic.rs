//! Logs of unknown trainers. The expectations are numbers written by hand from the logs.

use pulsetrain_formats::detect;

use crate::{
    imported::{Imported, all_samples, sample},
    value_table::{are_same, samples},
};

const FOLDER: &str = "generic/";

/// The values of metrics in the order of the log; of durations, which are histograms, the increases.
const LOGS: &str = "
generic/fairseq.log generic
train.global_step -> 99 199 200 299
train.loss -> 13.25 12.5 11.75
train.perplexity -> 6888.62 3755.37 2048
train.learning_rate -> 1.25e-5 2.5e-5 3.75e-5
train.grad_norm -> 2.5 2.25 1.75
train.throughput.tokens -> 52000 52500 53000
train.throughput.steps -> 0.5 0.5 0.5
train.loss_scale -> 2 2 2
train.elapsed_time -> 182 382 573
eval.loss -> 8.25
eval.perplexity -> 128

generic/mmengine.log generic
train.global_step -> 10 20 30 40
train.epoch -> 1 1 1 2
train.loss -> 11.5 9.25 7.75 6.5
train.learning_rate -> 0.01 0.01 0.01 0.005
train.eta -> 25 13 93609 9
memory.framework.allocated ->
train.step.duration -> 0.01 0.005 0.005 0.005

generic/detectron2.log generic
train.global_step -> 19 39 59
train.loss -> 1.5 1.25 1.125
train.loss_component ->
# loss_cls, loss_box_reg, and max_mem, whose M may be of 1000 or of 1024.
train.custom -> 0.75 0.25 3961 0.625 0.25 3961 0.5 0.25 3961
train.learning_rate -> 0.0025 0.005 0.01
train.eta -> 29112 29091 29078
train.step.duration -> 0.3325 0.335 0.3375

generic/imagenet.log generic
train.global_step -> 10 20 30
train.loss -> 6.9375 6.875 6.75
train.accuracy -> 0 0.005 0.02
train.custom -> 0.5 1.5 3
train.step.duration -> 0.25 0.24 0.26

generic/mnist.log generic
train.global_step -> 0 640 1280
train.epoch -> 1 1 1
train.loss -> 2.25 1.75 1.25
eval.loss -> 0.0625
eval.accuracy -> 0.98
train.custom ->

generic/bars.log generic
train.global_step -> 10 45 100
train.loss -> 2.5 2.25 2
train.learning_rate -> 3e-4 2e-4 1e-4
train.throughput.steps -> 2 1.44
train.custom -> 1 1 1
train.step.duration -> 1.5

generic/ray.log generic
train.global_step -> 10 20 30
train.loss -> 2.5 2.25 nan
train.grad_norm -> 1.25 1.125 inf
train.learning_rate -> 0.001 0.001 0.0005
train.throughput.tokens -> 51200 51300 51400
train.mfu -> 0.415 0.4175 0.42
rl.trajectory_reward -> 0.25 0.5 0.75
rl.entropy -> 1.5 1.25 1

generic/nested.jsonl generic
train.global_step -> 100 200 300
train.loss -> 2.5 2.25 2
train.learning_rate -> 0.001 0.0005 0.00025
train.throughput.tokens -> 1000 1100 1200
eval.loss -> 2.75
train.step.duration -> 0.25 0.5 0.25

generic/dicts.log generic
train.global_step -> 1 2 3
train.loss -> 2.5 2.25 2
train.grad_norm -> 1.5 1.25 1
train.learning_rate -> 3e-4 2e-4 1e-4
train.throughput.samples -> 12.5 12.75 13
eval.loss -> 2.375
eval.accuracy -> 0.5

generic/table.csv generic
train.global_step -> 10 20 30
train.loss -> 2.5 2.25 2
train.learning_rate -> 0.001 0.001 0.0005
train.throughput.tokens -> 51200 51300 51400
eval.loss -> 2.375

generic/units.log generic
train.global_step -> 100 200 300
train.loss -> 2.5 2.25 2
train.grad_norm -> 1.25 1.5 0.75
train.learning_rate -> 3e-4 2.5e-4 2e-4
train.mfu -> 0.455 0.46 0.465
train.throughput.tokens -> 12800 12900 13000
eval.loss -> 2.375
train.step.duration -> 0.125 0.25 0.125

generic/fastai.log generic
train.epoch -> 0 1 2
train.loss -> 2.5 2.25 2
eval.loss -> 2.75 2.5 2.25
eval.accuracy -> 0.5 0.625 0.75
# The time of an epoch.
train.custom -> 12 12 13

generic/yolo.log generic
train.epoch -> 1 2 3
# GPU_mem, whose G may be of 1000 or of 1024, three losses, Instances and Size; and the evaluation after each epoch.
train.custom -> 2.15 1.25 1.5 1.125 10 640 4 17 0.623 0.833 0.888 0.631 2.15 1 1.25 1 11 640 4 17 0.634 0.833 0.889 0.632 2.15 0.75 1 0.875 12 640 4 17 0.645 0.833 0.890 0.633

generic/splits.jsonl generic
train.global_step -> 10 20 30
train.loss -> 2.5 2.25 2
eval.loss -> 2.75 2.5
eval.accuracy -> 0.5 0.625
train.learning_rate -> 0.001 0.001 0.0005
# Seconds since the start under `time`.
train.custom -> 12.5 25 26 38.5 39.5

generic/sections.log generic
train.epoch -> 1 2 3
train.loss -> 2.5 2.25 2
train.accuracy -> 0.25 0.5 0.75
eval.loss -> 2.75 2.5 2.25
eval.accuracy -> 0.125 0.25 0.5

generic/gan.log generic
train.epoch -> 0 0 0
train.global_step -> 0 50 100
# Loss_D, Loss_G, D(x), and the first number under D(G(z)).
train.custom -> 1.75 5.25 0.5 0.625 0.75 25.25 0.75 0.125 0.5 5.125 0.875 0.25

generic/timm.log generic
train.epoch -> 0 0 0 0 0 1 1 1
train.global_step -> 0 50 100 150 199 200 250 300
train.loss -> 7 6.64 6.31 6 5.73 5.72 5.47 5.23
# The averages over the evaluation so far, which are in brackets.
eval.loss -> 5 5 5
eval.accuracy -> 0.109 0.109 0.109
# The duration of a batch of the evaluation, and Acc@5.
train.custom -> 0.25 29.5 0.25 29.5 0.25 29.5
train.step.duration -> 6.214 0.417 0.422 0.427 0.432 0.412 0.417 0.422

generic/kohya.log generic
train.global_step -> 20 140 160 180 200 220
train.loss -> 0.118 0.106 0.104 0.102 0.1 0.098

generic/swin.log generic
train.epoch -> 0 0 0 1
train.global_step -> 0 10 20 1251
train.loss -> 6.9812 6.9712 6.9612 6.9112
train.grad_norm -> 1.1012 1.2012 1.3012 1.4012
eval.loss -> 5.8012 5.8012
eval.accuracy -> 0.12012 0.12012 0.12512

generic/speechbrain.log generic
train.global_step -> 0 250 500 750 1000 1250 1500 1750 2000
train.loss -> 3.8 3.74 3.68 3.61 3.55 3.5 3.4 3.34 3.28 3.21 3.15
eval.loss -> 2.8
eval.accuracy -> 0.56

generic/quickstart.log generic
# The program counts samples.
train.global_step -> 64 6464 12864 60064 66464 72864
train.loss -> 2.303494 2.294637 2.277102 2.157494 2.147637 2.097102
eval.loss -> 2.150794 1.880794
eval.accuracy -> 0.509 0.609

generic/flax.log generic
train.epoch -> 1 2 3
train.loss -> 0.25 0.125 0.0625
train.accuracy -> 0.925 0.9625 0.9875
eval.loss -> 0.125 0.0625 0.0312
eval.accuracy -> 0.9625 0.975 0.9812
train.custom ->

generic/paddleocr.log generic
train.global_step -> 10 20 30 40 50 60 70
train.throughput.samples -> 349.32591 349.32591 349.32591 349.32591 349.32591 349.32591 349.32591
train.eta -> 1752 1692 1632 1572 1512 1452 1392
train.step.duration -> 0.18321 0.18321 0.18321 0.18321 0.18321 0.18321 0.18321
";

#[test]
fn generic_format_extracts_the_printed_values_of_unknown_trainers() {
    for log in samples(LOGS) {
        let imported = Imported::new(log.format, log.file);
        for (metric, values) in &log.series {
            let found = imported.values(metric);
            assert!(
                are_same(&found, values),
                "{}: {metric}: found {found:?}, expected {values:?}",
                log.file
            );
        }
    }
}

#[test]
fn every_generic_log_has_an_expectation() {
    let logs = samples(LOGS);
    let named = |name: &String| logs.iter().any(|log| log.file == name);
    let files = all_samples().into_iter().filter(|name| name.starts_with(FOLDER));
    let missing: Vec<String> = files
        .filter(|name| !named(name) && !name.ends_with("README.md"))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn dictionaries_and_tables_of_users_are_generic_logs() {
    let dictionary =
        |epoch: u32| format!("{{'step': {epoch}, 'epoch': {epoch}, 'loss': 2.{epoch}, 'lr': 1e-4}}\n");
    let row = |epoch: u32| format!("{epoch},{epoch},2.{epoch},1000\n");
    let rows: String = (1..4).map(row).collect();
    for log in [
        (1..4).map(dictionary).collect::<String>(),
        // A column of Lightning's tables is empty in some rows, and `epoch` is before `step`.
        format!("epoch,step,train_loss,tokens\n{rows}"),
        format!("step,epoch,train_loss,val_loss\n{}", rows.replace("1000", "")),
        format!("epoch,samples,train_loss,val_loss\n{rows}"),
    ] {
        let found = detect("own.log", log.as_bytes()).map(|(format, _)| format.name);
        assert!(
            found.as_ref().is_ok_and(|name| *name == "generic"),
            "{log}{found:?}"
        );
    }
}

#[test]
fn documentation_and_lock_files_are_not_detected_as_training_logs() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "exporter/mapping/MAPPING.md",
        "exporter/formats/FORMATS.md",
        "Cargo.lock",
    ] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(name);
        let bytes = std::fs::read(path).expect("the file can be read");
        assert!(detect(name, &bytes).is_err(), "{name}");
    }
    assert!(detect("", &sample("generic/README.md")).is_err());
}
