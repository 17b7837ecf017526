//! The third-party programs that check our output, as `tests/judges/install` installs them in its cache.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// A third-party program that checks our output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// The Prometheus Alertmanager.
    Alertmanager,
    /// Chromium.
    Chromium,
    /// The OpenTelemetry Collector.
    Collector,
    /// Grafana's dashboard-linter.
    DashboardLinter,
    /// A script that checks a dashboard against the TypeScript types of Grafana's dashboards.
    GrafanaSchema,
    /// Jaeger.
    Jaeger,
    /// A script that renders a dashboard with the panels of Perses in Chromium, and reports on each panel.
    Perses,
    /// Prometheus, with promtool in the same folder.
    Prometheus,
    /// A Python with the OpenTelemetry SDK's protobuf classes.
    PythonSdk,
    /// A script that prints the results of queries by Perfetto's trace_processor.
    TraceProcessor,
    /// VictoriaMetrics, single node.
    VictoriaMetrics,
}

impl Judge {
    /// Returns the name of its folder in `tests/judges`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Chromium => "chromium",
            Self::Collector => "collector",
            Self::DashboardLinter => "dashboard-linter",
            Self::GrafanaSchema => "grafana-schema",
            Self::Jaeger => "jaeger",
            Self::Perses => "perses",
            Self::Prometheus => "prometheus",
            Self::PythonSdk => "python-sdk",
            Self::TraceProcessor => "trace_processor",
            Self::VictoriaMetrics => "victoria-metrics",
        }
    }

    /// Returns the folder of its recipe and its additional files.
    pub fn folder(self) -> PathBuf {
        judges().join(self.name())
    }

    /// Returns the program, or `None`: then the test must return. The skip is reported in a line that the test runner does not
    /// capture.
    ///
    /// # Panics
    ///
    /// In CI (`CI` is set and not `false`), if the program is not installed.
    pub fn require_or_skip(self) -> Option<PathBuf> {
        let found = self.find();
        if found.is_none() {
            let line = format!("SKIPPED: {} not found", self.name());
            assert!(
                !in_ci(),
                "{line}; in CI every judge is required: run tests/judges/install"
            );
            writeln!(io::stderr(), "{line} (tests/judges/install gets it)")
                .expect("standard error can be written");
        }
        found
    }

    /// Asks the installer, which knows the path of its cache and the version for this checkout.
    fn find(self) -> Option<PathBuf> {
        let output = Command::new("bash")
            .arg(judges().join("install"))
            .args(["--path", self.name()])
            .output()
            .expect("bash can be started");
        let path = String::from_utf8(output.stdout).expect("the installer prints a path in UTF-8");
        output.status.success().then(|| PathBuf::from(path.trim_end()))
    }
}

fn judges() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("judges")
}

fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false")
}

/// Unwraps an `Option`, or returns from the test if a program or a permission that it needs is missing. The function that returns
/// `None`, such as [`Judge::require_or_skip`], has reported the skip.
#[macro_export]
macro_rules! some_or_return {
    ($option:expr) => {
        match $option {
            Some(value) => value,
            None => return,
        }
    };
}
