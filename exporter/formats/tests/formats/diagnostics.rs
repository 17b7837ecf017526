//! Lines that are no measurements arrive as `run.message`, with kind, severity, step and rank, and cost no measurement.

use serde_json::Value;

use crate::imported::{Imported, attributes};

/// Lines and their kind and severity; none repeats a phrase of the table in its own words.
const LINES: [(&str, &str, &str); 35] = [
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "out_of_memory",
        "ERROR",
    ),
    (
        "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 9.1G",
        "out_of_memory",
        "ERROR",
    ),
    (
        "slurmstepd: error: Detected 1 oom_kill event in StepId=99.0",
        "out_of_memory",
        "ERROR",
    ),
    (
        "node-3:411:902 [1] NCCL WARN Cuda failure 'unhandled'",
        "communication",
        "ERROR",
    ),
    (
        "[E ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9)",
        "communication",
        "ERROR",
    ),
    (
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "device",
        "ERROR",
    ),
    (
        "kernel: NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.",
        "device",
        "ERROR",
    ),
    ("Segmentation fault (core dumped)", "crash", "ERROR"),
    ("srun: error: node-4: task 31: Killed", "crash", "ERROR"),
    ("thread 'main' panicked at src/train.rs:88:9:", "crash", "ERROR"),
    ("Received SIGTERM, saving before the exit", "interruption", "WARN"),
    (
        "slurmstepd: error: *** JOB 12 ON node-1 CANCELLED AT 2026-01-02T10:00:00 DUE TO TIME LIMIT ***",
        "interruption",
        "ERROR",
    ),
    ("the loss is NaN, skipping the update", "not_finite", "WARN"),
    (
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "not_finite",
        "WARN",
    ),
    ("found NaN in the gradients of layer 3", "not_finite", "WARN"),
    (
        "ValueError: the vocabulary has no such token",
        "exception",
        "ERROR",
    ),
    (
        "/opt/a/b.py:17: FutureWarning: this argument will be removed",
        "warning",
        "WARN",
    ),
    ("WARNING: the data has too few shards", "warning", "WARN"),
    (
        "2026-01-02 10:00:00,123 - trainer - ERROR - cannot reach the store",
        "error",
        "ERROR",
    ),
    (
        "E0102 10:00:00.123456 411 loader.cc:17] shard is unreadable",
        "error",
        "ERROR",
    ),
    ("level=error msg=\"the disk is slow\"", "error", "ERROR"),
    (
        "{\"level\":\"warning\",\"message\":\"the queue of batches is empty 3 times\"}",
        "warning",
        "WARN",
    ),
    (
        "[2026-01-02 10:00:00][WARNING] falling back to eager mode",
        "warning",
        "WARN",
    ),
    ("Resuming training from step_400", "resume", "INFO"),
    ("=> loaded checkpoint 'run/last.pt' (epoch 4)", "resume", "INFO"),
    ("Restored the newest checkpoint of the run", "resume", "INFO"),
    ("***** Running Evaluation *****", "phase", "INFO"),
    ("Saving model checkpoint to out/checkpoint-500", "phase", "INFO"),
    ("Training finished.", "phase", "INFO"),
    ("WARNING: 磁盘已满", "warning", "WARN"),
    ("OVERFLOW! Rank 0 is skipping the step", "not_finite", "WARN"),
    ("Preemption signal received", "interruption", "WARN"),
    (
        "Sending process 812 closing signal SIGTERM",
        "interruption",
        "WARN",
    ),
    (
        "DataLoader worker (pid(s) 12) exited unexpectedly",
        "crash",
        "ERROR",
    ),
    (
        "socket error: Connection refused by node-4",
        "communication",
        "ERROR",
    ),
];

/// Lines that are no message.
const OTHERS: [&str; 20] = [
    "Loading checkpoint shards: 100%",
    "resume from checkpoint: None",
    "No checkpoint found to resume from",
    "Process 12 exited with exit code 0",
    "mean_squared_error: -0.5",
    "If you run out of memory, reduce the batch size",
    "save checkpoint every: 1000",
    "early stopping patience: 3",
    "explain finance to Nancy",
    "{\"prompt\": \"the process was killed\", \"completion\": \"resuming from a checkpoint\"}",
    "WARNING: 5",
    "Using 8 GPUs",
    "num_workers: 4",
    "error: 0.25",
    "check_nan: True",
    "resume_from_checkpoint: null",
    "loading shards of the tokenizer",
    "info: everything is fine here",
    "banana split in the information desk",
    "model has 12 layers",
];

fn messages(imported: &Imported) -> Vec<&Value> {
    let is_message = |event: &&Value| event["eventName"] == "run.message";
    imported.events.iter().filter(is_message).collect()
}

fn log_around(line: &str) -> String {
    let step = |step: i64| format!("step: {step} loss: {}.5 lr: 0.001\n", 10 - step);
    format!("{}{}{line}\n{}{}", step(1), step(2), step(3), step(4))
}

#[test]
fn each_line_has_its_kind_its_severity_and_the_step_before_it() {
    for (line, kind, severity) in LINES {
        let imported = Imported::from_text("generic", &log_around(line));
        let found = messages(&imported);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        let attributes = attributes(found[0]);
        assert_eq!(attributes["run.message.kind"], kind, "{line}");
        assert_eq!(found[0]["severityText"], severity, "{line}");
        assert_eq!(attributes["train.step"], "2", "{line}");
        // A loss that is NaN is a value too.
        let losses = imported.values("train.loss").into_iter();
        let finite: Vec<f64> = losses.filter(|loss| loss.is_finite()).collect();
        assert_eq!(finite, [9.5, 8.5, 7.5, 6.5], "{line}");
    }
    for line in OTHERS {
        let imported = Imported::from_text("generic", &log_around(line));
        assert_eq!(messages(&imported), Vec::<&Value>::new(), "{line}");
    }
}

#[test]
fn a_stack_trace_is_one_message_of_its_rank_and_its_numbers_are_no_values() {
    let trace = [
        "Traceback (most recent call last):",
        "  File \"train.py\", line 88, in main",
        "    loss: 0.25 = step(batch, lr=0.5)",
        "",
        "  File \"model.py\", line 9, in step",
        "    raise OverflowError(f'step: 7 loss: 99')",
        "demo.errors.OverflowError: step: 7 loss: 99",
    ];
    for tag in ["", "[rank1]: ", "(Trainer pid=71) "] {
        let trace: String = trace.iter().map(|line| format!("{tag}{line}\n")).collect();
        let tagged = |number: &str| match tag {
            "" => String::new(),
            tag => tag.replace('1', number),
        };
        let records = |number: &str| {
            let record = |step: i64| format!("{}step: {step} loss: {step}.5\n", tagged(number));
            (1..=3).map(record).collect::<String>()
        };
        let log = format!("{}{}{trace}", records("0"), records("1"));
        let imported = Imported::from_text("generic", &log);
        let found = messages(&imported);
        assert_eq!(found.len(), 1, "{tag}: {found:?}");
        let attributes = attributes(found[0]);
        assert_eq!(attributes["exception.type"], "demo.errors.OverflowError", "{tag}");
        assert_eq!(attributes["exception.message"], "step: 7 loss: 99", "{tag}");
        let stack = &attributes["exception.stacktrace"];
        assert!(
            stack.contains("line 9, in step\n") && stack.ends_with("loss: 99"),
            "{stack}"
        );
        assert_eq!(attributes["train.step"], "3", "{tag}");
        assert!(imported.points.iter().all(|point| point.value < 5.0), "{tag}");
    }
}

#[test]
fn a_stack_trace_without_an_end_hides_no_record() {
    let log = "step: 1 loss: 1.5\nTraceback (most recent call last):\n  File \"a.py\", line 1\nstep: 2 loss: 2.5\nstep: 3 loss: 3.5\nTraceback (most recent call last):\n  File \"b.py\", line 2, in end\n";
    let imported = Imported::from_text("generic", log);
    assert_eq!(imported.values("train.loss"), [1.5, 2.5, 3.5]);
    assert_eq!(messages(&imported).len(), 2);
}

#[test]
fn messages_that_differ_in_numbers_are_sent_at_powers_of_ten() {
    let mut log = String::new();
    for step in 1..=250 {
        log += &format!("step: {step} loss: {step}.5\nWARNING: batch {step} of shard 0x{step:x} is short\n");
    }
    let imported = Imported::from_text("generic", &log);
    let occurrences = messages(&imported).into_iter().map(|message| {
        let attributes = attributes(message);
        let occurrences = attributes.get("run.message.occurrences").cloned();
        (occurrences.unwrap_or_default(), attributes["train.step"].clone())
    });
    let expected = [("", "1"), ("10", "10"), ("100", "100")];
    let expected = expected.map(|(occurrences, step)| (occurrences.to_owned(), step.to_owned()));
    assert_eq!(occurrences.collect::<Vec<_>>(), expected);
    assert_eq!(imported.values("train.loss").len(), 250);
}

#[test]
fn the_last_line_is_a_message_without_its_newline() {
    for end in [
        "Killed",
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
    ] {
        let imported =
            Imported::from_text("generic", &format!("step: 1 loss: 1.5\nstep: 2 loss: 2.5\n{end}"));
        assert_eq!(messages(&imported).len(), 1, "{end}");
    }
}

#[test]
fn a_stack_trace_takes_nothing_from_other_lines() {
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 1, in main\n    loss: 0.25\nray.exceptions.RayTaskError(ValueError): failed\n";
    for (log, losses) in [
        // A bar without its newline.
        (
            format!("step: 1 loss: 1.5\nstep: 2 loss: 2.5\nstep: 3 loss: 3.5 {trace}"),
            vec![1.5, 2.5, 3.5],
        ),
        // Another process of the same log, with indented records.
        (
            trace.replace("ray.", " step: 1 loss: 1.5\n step: 2 loss: 2.5\nray."),
            vec![1.5, 2.5],
        ),
        (
            format!(
                "step: 1 loss: 1.5\nstep: 2 loss: 2.5\n  {}",
                trace.replace('\n', "\n  ")
            ),
            vec![1.5, 2.5],
        ),
        (
            "step: 1 loss: 1.5\nstep: 2 loss: 2.5\n  Traceback (most recent call last):\n\u{3000}中文: 3\n"
                .to_owned(),
            vec![1.5, 2.5],
        ),
    ] {
        let imported = Imported::from_text("generic", &log);
        assert_eq!(imported.values("train.loss"), losses, "{log}");
        assert_eq!(messages(&imported).len(), 1, "{log}");
    }
}

#[test]
fn a_stack_trace_of_a_dead_process_ends() {
    let mut log = "[rank0]: step: 1 loss: 1.5\n[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\", line 1\n".to_owned();
    (2..1200).for_each(|step| log += &format!("[rank0]: step: {step} loss: 1.5\n"));
    let imported = Imported::from_text("generic", &log);
    assert_eq!(imported.values("train.loss").len(), 1199);
    let message = attributes(messages(&imported)[0]);
    assert_eq!(message["exception.stacktrace"].lines().count(), 2);
}

#[test]
fn errors_are_recorded_after_thousands_of_different_warnings() {
    let name = |mut number: u32| {
        let mut name = String::new();
        while number > 0 {
            name.push(char::from(b'a' + (number % 26) as u8));
            number /= 26;
        }
        name
    };
    let mut log = "step: 1 loss: 1.5\nstep: 2 loss: 2.5\n".to_owned();
    (1..6000).for_each(|number| log += &format!("WARNING: the file {} is old\n", name(number)));
    let imported = Imported::from_text("generic", &(log + "RuntimeError: CUDA out of memory\n"));
    let last = messages(&imported).pop().expect("the log has messages");
    assert_eq!(attributes(last)["run.message.kind"], "out_of_memory");
}

#[test]
fn lines_that_can_be_private_are_no_messages() {
    let log = include_str!("../../../../tests/corpus/tunix/colocated/stderr_absl.log");
    let at = log.find("string metric").expect("the sample has prompts");
    let end = at + log[at..].find('\n').expect("the line ends");
    let secret = " 'the process was killed: resuming training from a checkpoint'";
    let log = format!("{}{secret}\n{secret}{}", &log[..end], &log[end..]);
    let imported = Imported::from_text("tunix", &log);
    assert!(
        imported
            .events
            .iter()
            .all(|event| !event.to_string().contains("was killed"))
    );
}
