//! The foreign programs that judge our output, as `tests/judges/install` puts them into its cache.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

/// A program that nobody here wrote.
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
    /// A script that draws a dashboard with the panels of Perses in Chromium, and reports each panel.
    Perses,
    /// Prometheus, with promtool in the same folder.
    Prometheus,
    /// A Python with the OpenTelemetry SDK's protobuf classes.
    PythonSdk,
    /// Grafana Tempo.
    Tempo,
    /// A script that prints the results of queries by Perfetto's trace_processor.
    TraceProcessor,
}

impl Judge {
    /// The name of its folder in `tests/judges`.
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
            Self::Tempo => "tempo",
            Self::TraceProcessor => "trace_processor",
        }
    }

    /// The folder of its recipe and of what goes with it.
    pub fn folder(self) -> PathBuf {
        judges().join(self.name())
    }

    /// Returns the program, or `None`: then the test returns. A line that the test runner does not capture reports it.
    ///
    /// # Panics
    ///
    /// In CI (`CI` is set and not `false`), where every judge is required.
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

    /// The installer alone knows where its cache is and which version belongs to this checkout.
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
