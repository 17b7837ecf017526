//! Each experiment on a correct driver: it compares something, and passes.

use std::{fs, process::Command};

use pulsetrain_tests::workspace_path;

use super::check::{run, run_with};

#[test]
fn identity_and_readings_agree_with_nvidia_smi() {
    let check = run("gpu_check", "", "1-5");
    check.assert_passed(&[1, 2, 3, 4, 5]);
    let corpus = |file: &str| check.corpus.path(&format!("corpus/{file}"));
    for file in ["table.txt", "results.json", "machine.json", "nvidia-smi.txt"] {
        assert!(corpus(file).exists(), "{file}");
    }
    let kept = "03-values-between-two-reads-of-nvidia-smi";
    for file in [
        "page-load.prom",
        "agent/points.jsonl",
        "agent/log.txt",
        "load-matmul/output.jsonl",
    ] {
        assert!(corpus(&format!("{kept}/{file}")).exists(), "{file}");
    }
}

#[test]
fn energy_of_steps_agrees_with_windows_of_the_trainer() {
    run("gpu_check", "", "6").assert_passed(&[6]);
}

#[test]
fn link_bytes_match_the_copied_bytes() {
    run("gpu_check", "", "7-10").assert_passed(&[7, 8, 9, 10]);
}

#[test]
fn bytes_that_a_gpu_cannot_count_are_absent_with_a_reason() {
    let check = run("a100x8", "gpus: {count: 2}", "7");
    check.assert_passed(&[7]);
    assert!(check.output.contains("absent: not_supported"), "{}", check.output);
}

#[test]
fn performance_counters_agree_with_the_work_and_leave_room_for_a_profiler() {
    run("gpu_check", "", "11,12").assert_passed(&[11, 12]);
}

#[test]
fn processes_match_the_driver_and_ranks_are_never_misattributed() {
    run("gpu_check", "", "13-16").assert_passed(&[13, 14, 15, 16]);
}

#[test]
fn mig_instances_report_their_memory_and_end() {
    run("gpu_check_mig", "", "17").assert_passed(&[17]);
}

#[test]
fn gpu_reset_requires_the_agent_to_release_the_driver_and_program_errors_are_counted() {
    run("gpu_check", "", "18,19").assert_passed(&[18, 19]);
}

#[test]
fn failing_or_hung_gpu_causes_no_missing_points_on_other_gpus() {
    run("gpu_check", "", "20,25").assert_passed(&[20, 25]);
}

#[test]
fn training_limits_and_starts_are_measured() {
    let check = run("gpu_check", "", "22-24");
    check.assert_passed(&[22, 23, 24]);
}

/// The CPU share applies to release builds; this test checks the times of the passes.
#[test]
fn cost_is_measured_by_threads_and_passes() {
    let check = run("gpu_check", "", "21");
    let rows = check.rows(21);
    assert!(
        rows.contains(&("99th percentile of a pass: at most, s", "passed")),
        "{rows:#?}"
    );
    let threads = rows
        .iter()
        .find(|(what, _)| what.starts_with("threads that call the driver"));
    assert!(threads.is_some(), "{rows:#?}");
}

#[test]
fn experiments_with_missing_prerequisites_are_skipped_with_a_reason() {
    let check = run_with("gpu_check", "gpus: {count: 1}", "4,6,7,14,20", false);
    assert_eq!(check.code, Some(0), "{}", check.output);
    for (experiment, reason) in [
        (6, "torch with CUDA is missing"),
        (7, "torch with CUDA is missing"),
        (14, "nvidia-cuda-mps-control is not in PATH"),
        (20, "the machine has one GPU"),
    ] {
        let rows = check.rows(experiment);
        let [(why, "skipped")] = rows.as_slice() else {
            panic!("{experiment}: {rows:?}");
        };
        assert!(why.contains(reason), "{experiment}: {why}");
    }
}

#[test]
fn documented_experiments_match_the_check_program() {
    let program = workspace_path("tests/gpu-check");
    let listed = Command::new("python3")
        .arg(program)
        .arg("--list")
        .output()
        .expect("python3 can be started");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let page = fs::read_to_string(workspace_path("exporter/gpu/GPU.md")).expect("the page can be read");
    let experiments: Vec<_> = listed
        .lines()
        .filter_map(|line| line.trim().split_once("  "))
        .collect();
    assert_eq!(experiments.len(), 25, "{listed}");
    for (number, title) in experiments {
        assert!(
            page.contains(&format!("| {number} | {title} |")),
            "{number} {title}"
        );
    }
}
