//! `--to http://prometheus/api/v1/otlp` for a finished run.

use std::path::Path;

use pulsetrain_tests::{Finished, Folder, Import, Judge, Prometheus, some_or_return};

use crate::history::world::{Run, WINDOW};

#[test]
fn otlp_import_keeps_every_timestamp_with_an_out_of_order_window() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), WINDOW);
    import(&Run::of_now(&folder), &prometheus).expect_code(0);
    import(&run.log, &prometheus).expect_code(0);
    run.expect_losses(&prometheus);
}

#[test]
fn otlp_import_without_an_out_of_order_window_names_the_setting() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let folder = Folder::new();
    let run = Run::finished(&folder);
    let prometheus = Prometheus::start_on(&program, &folder.path("data"), "");
    import(&Run::of_now(&folder), &prometheus).expect_code(0);
    import(&run.log, &prometheus).expect_code(1).expect_words(&[
        "out of bounds",
        "storage.tsdb.out_of_order_time_window",
        "Mimir",
        "openmetrics:FILE",
    ]);
}

fn import(log: &Path, prometheus: &Prometheus) -> Finished {
    Import::for_people(log)
        .to(format!("metrics={}/api/v1/otlp", prometheus.url()))
        .run()
}
