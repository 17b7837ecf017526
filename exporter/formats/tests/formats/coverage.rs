//! `exporter/formats/FORMATS.md` equals the formats' coverage tables, and every name of a sample is in a table.

use std::{collections::BTreeMap, fmt::Write};

use pulsetrain_formats::FORMATS;
use pulsetrain_record::SkipReason;

use crate::{
    Imported,
    imported::{self, WRITE_GOLDEN, is_golden, read},
};

#[test]
fn formats_page_is_up_to_date_with_the_format_tables() {
    is_golden(concat!(env!("CARGO_MANIFEST_DIR"), "/FORMATS.md"), &page());
}

/// Names that the program of a sample made up, which no trainer knows.
const OF_A_PROGRAM: [&str; 2] = ["global/train/test_metric ", "global/eval/test_metric "];

#[test]
fn every_name_in_a_recognised_sample_is_known() {
    let mut recognised = 0;
    for (name, bytes, format) in imported::recognised() {
        // Its dictionary does not claim to be complete.
        if format.is_fallback() {
            continue;
        }
        recognised += 1;
        let (_, _, skipped) = read(format, &bytes);
        let is_own = |message: &str| OF_A_PROGRAM.iter().any(|name| message.starts_with(name));
        let unknown: Vec<_> = skipped
            .problems()
            .iter()
            .filter(|problem| problem.reason == SkipReason::UnknownName && !is_own(&problem.message))
            .collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
    }
    assert!(recognised > 30, "only {recognised} samples were recognised");
}

#[test]
fn every_sample_of_a_known_format_has_a_golden_file() {
    for (name, _, format) in imported::recognised() {
        // A log of a mapping is recognised by the fallback too, but its golden file is that of its mapping.
        if !format.is_fallback() || name.starts_with("generic/") {
            Imported::new(format.name, &name).assert_no_losses();
        }
    }
}

/// A section a format, a row a name upstream.
fn page() -> String {
    let mut page = format!(
        "# What becomes of every name\n\n\
         Written from the tables of the formats by `{WRITE_GOLDEN}`.\n\
         A name that is in no table is kept as `train.custom` and reported once.\n\n\
         Before a format reads a line, the envelopes of containers and schedulers around it are removed: JSON of Docker, journald, clouds and \
         structured loggers, the prefixes of containerd, kubectl, stern, Docker Compose, syslog, pdsh and launchers. Their time is that of \
         records without one.\n\n\
         The number in the tag of a process is `train.rank` of the resource: `[rank0]:`, `[default0]:` (torchrun; this is the number of the \
         worker on its own host, so it is also `train.local_rank`, and both are equal on a single host), `[Rank 0]`, `[rank: 0]`, `GPU0`, \
         `cuda:0`, `0:` (`srun --label`), `[1,0]<stdout>:` (`mpirun --tag-output`), `\"rank\": 0`. Of several names such as `worker-0`, \
         `trainer-1 |` or `[pod/train-0/main]`, each has its number as its rank, or the next free one if another name has it. Processes of Ray, \
         as in `(TrainActor pid=7, ip=10.0.0.1)`, are numbered by their appearance among those of the same class.\n\n\
         A mapping without a named format reads lines as they are.\n",
    );
    let mut samples = samples_by_format();
    for format in FORMATS {
        let samples = samples.remove(format.name).unwrap_or_default();
        let rows = (format.coverage)();
        write!(page, "\n## `{}`: {}\n\n", format.name, format.brief).expect("invariant: a String takes all");
        if !samples.is_empty() {
            write!(page, "Shown by: {}.\n\n", samples.join(", ")).expect("invariant: a String takes all");
        }
        page.push_str("| record | key | becomes | attributes | how |\n|---|---|---|---|---|\n");
        for row in rows {
            let cells = [
                row.record,
                &*row.key,
                &*row.name,
                &row.attributes,
                &row.conversion,
            ]
            .map(|cell| cell.replace('|', "\\|"));
            writeln!(page, "| {} |", cells.join(" | ")).expect("invariant: a String takes all");
        }
    }
    page
}

/// The samples by the format that they are recognised as.
fn samples_by_format() -> BTreeMap<&'static str, Vec<String>> {
    let mut samples: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, _, format) in imported::recognised() {
        samples.entry(format.name).or_default().push(format!("`{name}`"));
    }
    samples
}
