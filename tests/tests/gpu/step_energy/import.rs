//! `pulsetrain import`: steps of a finished run, with recorded readings.

use pulsetrain_tests::{
    Folder, Import, SurogateWriter,
    otlp::{double, messages, steps, text_of, time},
};

use crate::step_energy::trainer::record;

#[test]
fn import_computes_step_energy_from_recorded_gpu_readings() {
    const WATTS: f64 = 300.0;
    const BEGIN: u64 = 1_790_000_000_000_000_000;
    let folder = Folder::new();
    let (plain, out) = (folder.path("plain.jsonl"), folder.path("out.jsonl"));
    let log = folder.path("training.json");
    let mut writer = SurogateWriter::create(&log);
    let mut end = BEGIN;
    for (step, millis) in [250_u32, 317, 1_940, 3, 610, 611, 90, 2_205]
        .into_iter()
        .enumerate()
    {
        end += u64::from(millis) * 1_000_000;
        writer.append(&record(step, end, f64::from(millis)));
    }
    Import::new(&log).to(&plain).run().expect_code(0);
    let known = steps(&messages(&plain));
    assert_eq!(known.len(), 8);

    let mut lines = String::new();
    let begin = BEGIN - 700_000_000;
    let mut at = begin;
    while at < end + 1_000_000_000 {
        let joules = WATTS * (at - begin) as f64 / 1e9;
        let id = r#"{"key":"gpu.id","value":{"stringValue":"GPU-1"}}"#;
        lines += &format!(
            r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"gpu.energy","unit":"J","sum":{{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{{"timeUnixNano":"{at}","asDouble":{joules},"attributes":[{id}]}}]}}}}]}}]}}]}}"#
        );
        lines += "\n";
        at += 1_000_000_000;
    }
    let readings = folder.file("gpu.jsonl", lines);
    Import::new(&log)
        .arg("--gpu-readings")
        .arg(readings)
        .to(&out)
        .run()
        .expect_code(0);
    let derived = steps(&messages(&out));
    assert_eq!(derived.len(), known.len());
    for span in &derived {
        let secs = (time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano")) as f64 / 1e9;
        let reported = double(span, "gpu.step.energy").expect("every step lies among the readings");
        assert!((reported - WATTS * secs).abs() < 1e-6, "{reported} J in {secs} s");
        assert_eq!(text_of(span, "gpu.step.attribution"), Some("host"));
    }
    Import::new(&log)
        .arg("--gpu-readings")
        .arg(&plain)
        .to(&out)
        .run()
        .expect_code(1);
}
