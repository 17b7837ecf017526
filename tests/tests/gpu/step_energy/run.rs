//! `pulsetrain run`: the steps of its trainer, and the GPUs that the trainer uses.

use pulsetrain_tests::{
    FakeNvml, Finished, Folder, command,
    otlp::{double, messages, steps, sums, text_of},
};

use crate::step_energy::power::ALONE;

/// Prints ten steps of a quarter of a second each, as Surogate does.
const TRAINER: &str = r#"
import datetime, json, sys, time
for step in range(10):
    began = time.time()
    time.sleep(0.25)
    now = time.time()
    record = {"log": "step", "time": datetime.datetime.utcfromtimestamp(now).strftime("%Y-%m-%d %H:%M:%S.%f"), "step": step,
              "epoch": 0.5, "step_tokens": 16384, "duration_ms": int((now - began) * 1000), "norm": 1.5, "loss": 2.5, "lr": 2e-05,
              "phase": "converging"}
    print(json.dumps(record), flush=True)
"#;

#[test]
fn run_reports_the_step_energy_of_the_gpus_of_its_trainer() {
    let driver = FakeNvml::with("uneven_power", ALONE);
    driver.run_from(0.0);
    let folder = Folder::new();
    let library = driver.library();
    let section = format!("gpu: {{interval: 120ms, library: \"{}\"}}\n", library.display());
    let (config, out) = (folder.file("run.yaml", section), folder.path("out.jsonl"));
    let mut command = command(["run", "--run-id", "ours", "--drain", "10"]);
    command
        .arg("--config")
        .arg(config)
        .arg("--to")
        .arg(&out)
        .args(["--", "python3", "-c", TRAINER])
        .envs([("TZ", "UTC"), ("PYTHONWARNINGS", "ignore")]);
    Finished::run(&mut command).expect_code(0);
    let sent = messages(&out);
    let steps = steps(&sent);
    assert_eq!(steps.len(), 10);
    let reported = steps.iter().filter(|step| {
        matches!(
            text_of(step, "gpu.step.energy_status"),
            Some("complete" | "coarse")
        )
    });
    let reported: Vec<_> = reported.collect();
    // The first step may have begun before the first reading of the GPU, and the last one ended after the last reading.
    assert!(reported.len() >= 7, "{steps:#?}");
    for step in reported {
        assert_eq!(text_of(step, "gpu.step.attribution"), Some("rank"));
        let watts = double(step, "gpu.step.mean_power").expect("a complete step has its power");
        // If the trainer starts slowly, its steps may coincide with the lowest power.
        assert!(
            (89.0..701.0).contains(&watts),
            "{watts} W is not what the GPU can draw"
        );
    }
    let energy = sums(&sent, "gpu.energy");
    let point = energy.first().expect("the counter");
    assert_eq!(text_of(point, "train.run.id"), Some("ours"), "{point}");
}
