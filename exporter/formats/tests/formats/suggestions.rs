//! `import --suggest-mapping`: a mapping that is applied unedited delivers at least the values that a log has without it.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use pulsetrain_formats::{ReadTime, detect, format_by_name, suggest_mapping};
use pulsetrain_mapping::MappingFile;
use pulsetrain_otlp::UnixNanos;

use crate::imported::{Imported, NEAR, all_samples, head, sample};

/// The values of a log: the number of each triple of series, step and value.
type Values = BTreeMap<(String, Option<i64>, u64), usize>;

fn values(imported: &Imported) -> Values {
    let steps = imported
        .points
        .iter()
        .filter(|point| point.metric == "train.global_step");
    let steps: BTreeMap<u64, i64> = steps.map(|point| (point.time, point.value as i64)).collect();
    let mut values = Values::new();
    for point in &imported.points {
        let step = steps.get(&point.time).copied();
        *values
            .entry((point.series(), step, point.value.to_bits()))
            .or_default() += 1;
    }
    values
}

/// Returns the number of values that a log has without the mapping, and of those with it.
fn compare(name: &str, bytes: &[u8]) -> Option<(usize, usize)> {
    let time = ReadTime {
        unix_nanos: UnixNanos(NEAR),
        is_live: false,
    };
    let suggested = suggest_mapping(name, bytes, time).ok()?;
    let file = MappingFile::parse(&suggested).unwrap_or_else(|error| panic!("{name}: {error}: {suggested}"));
    let mapping = file
        .build()
        .unwrap_or_else(|faults| panic!("{name}: {faults:?}: {suggested}"));
    let format =
        format_by_name(mapping.format_name().expect("a suggestion names a format")).expect("a format");
    let mapped = values(&Imported::from_bytes_by(format, &Arc::new(mapping), bytes));
    let own = match detect(name, head(bytes)) {
        Ok((own, _)) => {
            assert_eq!(own.name, format.name, "{name}");
            values(&Imported::from_bytes(own, bytes))
        }
        Err(_) => Values::new(),
    };
    for (value, count) in &own {
        let found = mapped.get(value).copied().unwrap_or_default();
        assert!(
            found >= *count,
            "{name}: {found} of {count} {value:?} (value {}) with\n{suggested}",
            f64::from_bits(value.2)
        );
    }
    Some((own.values().sum(), mapped.values().sum()))
}

#[test]
fn suggestions_for_all_samples_are_not_worse_than_no_mapping() {
    let mut compared = 0;
    for name in all_samples() {
        compared += usize::from(compare(&name, &sample(&name)).is_some());
    }
    assert!(compared > 80, "{compared} samples");
}

/// Returns a log whose lines a program prints at each step.
fn log(lines: impl Fn(u32, &mut String)) -> String {
    let mut text = String::new();
    (1..12).for_each(|step| lines(step, &mut text));
    text
}

#[test]
fn suggestions_for_logs_of_many_forms_are_not_worse_than_no_mapping() {
    let logs = [
        log(|step, text| {
            // Two kinds of records, a count of another loop, and remarks with the words of the records.
            let _ = write!(
                text,
                "step {step} | loss {0}.5 | heat {step}\nengine room: heat {step}00, loss of pressure {0}\nEpoch {step}/11\n\
                 eval: bleu 3{step}.5 ({step} of 11)\npool 3/7 step {0} kept 5\n",
                20 - step
            );
        }),
        log(|step, text| {
            let rank = step % 3;
            let _ = write!(
                text,
                "[rank{rank}]: step {step} loss 2.{step} lr 3e-4\n[rank{rank}]: cache hit 9{step}.5% after {step} ms\n\
                 [rank{rank}]: cache hit 9{step}.5% after {step} ms\n"
            );
        }),
        log(|step, text| {
            let _ = write!(
                text,
                "{{\"step\": {step}, \"loss\": 2.{step}, \"Loss\": 3}}\n{{\"event\": \"gc\", \"pause\": {step}, \"Loss\": 1}}\n"
            );
        }),
        log(|step, text| {
            let _ = write!(
                text,
                "Train Epoch: {0} [{step}/11] Loss (avg): 2.{step} Acc@1 7{step}\r 10%|#    | {step}/11 [00:0{0}<00:09, 1.5it/s]\n\
                 Test Error:\n  Accuracy: 4{step}.5%, Avg loss: 1.{step}\nshift {{a}} $x took 0.{step} s\n",
                step / 4
            );
        }),
        log(|step, text| {
            let _ = write!(
                text,
                "Learning iteration {step}/11\n    mean reward: {step}.25\n    fps: 310{step}\nsaved shard-{step:03} ({step} MB) to /v/s{step}\n"
            );
        }),
        format!(
            "epoch,train_loss,valid_loss,odd col\n{}",
            log(|step, text| {
                let _ = writeln!(text, "{step},2.{step},3.{step},{step}");
            })
        ),
        log(|step, text| {
            let _ = writeln!(text, "nothing usual {step} here, warp {step}.5 at sector {step}");
        }),
        log(|step, text| {
            let _ = write!(
                text,
                "step {} train_loss 2.5\nstep {step} loss 2.25 train_loss 2.75\nphase A => TFLOPs {step}.5 B => TFLOPs 3{step}\n",
                step - 1
            );
        }),
    ];
    let mut more = 0;
    for (number, log) in logs.iter().enumerate() {
        let (own, mapped) =
            compare(&format!("log {number}"), log.as_bytes()).expect("a text has a suggestion");
        more += usize::from(mapped > own);
    }
    assert!(more > 4, "{more} logs have more values with their suggestions");
}
