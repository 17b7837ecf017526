//! Perfetto's trace_processor as a judge: loads a trace, answers in rows.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::Judge;

/// The judge, ready to be asked.
#[derive(Debug)]
pub struct TraceProcessor {
    script: PathBuf,
}

impl TraceProcessor {
    /// The judge, or none, in which case the test is to return.
    pub fn require_or_skip() -> Option<Self> {
        let script = Judge::TraceProcessor.require_or_skip()?;
        Some(Self { script })
    }

    /// The rows that each query finds in a trace, and asserts that its statistics have no error, no loss and no notice.
    ///
    /// # Panics
    ///
    /// Where the trace cannot be loaded, a query makes no sense, or anything in `stats` is worse than information.
    pub fn query<const N: usize>(&self, trace: &Path, queries: [&str; N]) -> [Vec<Value>; N] {
        self.rows(Command::new(&self.script).arg(trace), trace, queries)
    }

    /// The same with a package of SQL modules, which queries can include.
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
