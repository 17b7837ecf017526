//! `--to remote-write:URL` for a finished run.

use pulsetrain_tests::{Folder, Import, Judge, Prometheus, some_or_return};

use crate::history::world::{Run, WINDOW};

#[test]
fn remote_write_keeps_the_timestamp_of_every_loss() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), WINDOW);
    let target = format!("remote-write:{}/api/v1/write", prometheus.url());
    for log in [Run::of_now(&folder), run.log.clone()] {
        Import::for_people(log).to(&target).run().expect_code(0);
    }
    run.expect_losses(&prometheus);
    let at_end = |expression: &str| prometheus.value_at(expression, run.end_seconds());
    let steps = run.losses.len() as f64;
    let buckets = "last_over_time(train_step_duration_seconds_bucket{le=\"+Inf\"}[1h])";
    assert_eq!(at_end(buckets), Some(steps));
    assert_eq!(at_end("count(last_over_time(target_info[1h]))"), Some(1.0));
}

#[test]
fn rejected_remote_write_names_the_prometheus_setting_to_change() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), "");
    let import = |log, path: &str| {
        let target = format!("remote-write:{}{path}", prometheus.url());
        Import::for_people(log).to(target).run()
    };
    import(Run::of_now(&folder), "/api/v1/write").expect_code(0);
    import(run.log.clone(), "/api/v1/write")
        .expect_code(1)
        .expect_words(&["out_of_order_time_window", "Mimir"]);
    import(run.log, "/api/v1/nowhere")
        .expect_code(1)
        .expect_words(&["404", "--web.enable-remote-write-receiver"]);
}
