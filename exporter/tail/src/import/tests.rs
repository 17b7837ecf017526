use std::{fs, path::PathBuf, sync::Mutex, time::Duration};

use pulsetrain_pipeline::{CancellationToken, Pipeline, run_sources};

use super::*;
use crate::fragile;

/// Imports several files and returns the reports.
fn imported(paths: Vec<PathBuf>, options: &RunOptions) -> Vec<ImportReport> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sources = paths.into_iter().map(|path| {
        let reports = Arc::clone(&reports);
        let on_end = move |report| reports.lock().unwrap().push(report);
        Box::new(LogSource::new(LogInput::Path(path), options.clone(), on_end)) as Box<dyn Source>
    });
    let sources = sources.collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (pipeline, ingress) = Pipeline::builder().start();
        run_sources(sources, &ingress, &CancellationToken::new()).await;
        drop(ingress);
        pipeline.drain(Duration::from_secs(60)).await;
    });
    std::mem::take(&mut *reports.lock().unwrap())
}

#[test]
fn a_parser_that_panics_ends_only_its_own_import() {
    let folder = tempfile::tempdir().unwrap();
    let [broken, healthy] = ["broken.log", "healthy.log"].map(|name| folder.path().join(name));
    fs::write(&broken, "one\npanic\nthree\n").unwrap();
    fs::write(&healthy, "one\ntwo\nthree\n").unwrap();
    let options = RunOptions {
        format: Some(&fragile::FORMAT),
        ..RunOptions::default()
    };
    let reports = imported(vec![broken.clone(), healthy], &options);
    assert_eq!(reports.len(), 2);
    for report in reports {
        let error = report.error.map(|error| error.to_string()).unwrap_or_default();
        if report.input == broken.display().to_string() {
            assert!(error.contains("the line is fatal"), "{error}");
            assert_eq!(report.counts.records, 1);
        } else {
            assert_eq!((error.as_str(), report.counts.records), ("", 3));
        }
    }
}

#[test]
fn inspection_and_import_agree_on_a_start_in_the_specified_timezone() {
    const LOCAL_SECONDS: u64 = 1_795_220_320;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("training.json");
    fs::write(
        &log,
        "[\n  {\"log\": \"cmd\", \"time\": \"2026-11-21 00:18:40.000000000\", \"step\": 0, \"cmd\": []}\n]\n",
    )
    .unwrap();
    for (timezone, hours) in [(None, 0), (Some("-05:00"), 5)] {
        let options = RunOptions {
            timezone: timezone.map(|name: &str| name.to_owned().try_into().unwrap()),
            ..RunOptions::default()
        };
        let start = UnixNanos((LOCAL_SECONDS + hours * 3_600) * 1_000_000_000);
        let inspected = inspect(&LogInput::Path(log.clone()), &options);
        let imported = imported(vec![log.clone()], &options).remove(0);
        assert_eq!(inspected.run.start_unix_nanos, start, "{:?}", inspected.error);
        assert_eq!(imported.run.start_unix_nanos, start, "{:?}", imported.error);
    }
}
