//! Perfetto's trace_processor as a third-party check: loads a trace and returns rows.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Judge;

/// The script that runs trace_processor.
#[derive(Debug)]
pub struct TraceProcessor {
    script: PathBuf,
}

impl TraceProcessor {
    /// Returns the trace processor, or `None`: then the test must return.
    pub fn require_or_skip() -> Option<Self> {
        let script = Judge::TraceProcessor.require_or_skip()?;
        Some(Self { script })
    }

    /// Returns the rows that each query finds in a trace. Also checks that the statistics of the trace have no errors and no
    /// losses.
    ///
    /// # Panics
    ///
    /// If the trace cannot be loaded, a query is invalid, or anything in `stats` is more severe than information.
    pub fn query<const N: usize>(&self, trace: &Path, queries: [&str; N]) -> [Vec<Value>; N] {
        self.rows(Command::new(&self.script).arg(trace), trace, queries)
    }

    /// As [`query`](Self::query), with a package of SQL modules, which queries can include.
    pub fn query_with_package<const N: usize>(
        &self,
        package: &Path,
        trace: &Path,
        queries: [&str; N],
    ) -> [Vec<Value>; N] {
        let mut command = Command::new(&self.script);
        command.arg("--add-sql-package").arg(package).arg(trace);
        self.rows(&mut command, trace, queries)
    }

    fn rows<const N: usize>(
        &self,
        command: &mut Command,
        trace: &Path,
        queries: [&str; N],
    ) -> [Vec<Value>; N] {
        let complaints =
            "select name, idx, value, severity from stats where severity != 'info' and value > 0";
        let output = command
            .arg(complaints)
            .args(queries)
            .output()
            .expect("the judge can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", trace.display());
        let text = String::from_utf8(output.stdout).expect("the judge prints UTF-8");
        let mut answers = text.lines().map(|line| {
            let rows: Value = serde_json::from_str(line).expect("the judge prints JSON");
            rows.as_array().expect("an answer is a list of rows").clone()
        });
        let found = answers.next().unwrap_or_else(|| panic!("no answer: {errors}"));
        assert!(found.is_empty(), "{}: {found:?}", trace.display());
        std::array::from_fn(|_| answers.next().expect("every query has an answer"))
    }
}
