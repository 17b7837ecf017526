//! The table of the metrics of an AMD GPU and the files that they are read from.

use std::{
    fmt::Write,
    io::{self, ErrorKind},
};

use pulsetrain_semconv::{
    Metric,
    attribute::{
        GPU_CLOCK_DOMAIN, GPU_CLOCK_LIMIT_KIND, GPU_ECC_LOCATION, GPU_ECC_SEVERITY, GPU_FAN_INDEX,
        GPU_LINK_READING, GPU_POWER_LIMIT_KIND, GPU_POWER_READING, GPU_TASK, GPU_TEMPERATURE_LIMIT_KIND,
        GPU_TEMPERATURE_SENSOR,
    },
    metric,
};

use super::{
    card::Card,
    compute, energy,
    table_rows::{self, TABLE_ROWS},
};
use crate::{
    Reason, Unavailable,
    reading::{
        Cadence::{self, Infrequent, Once, Tick},
        Fixed, Labels, Readings,
    },
};

/// A row of the table.
pub(super) struct Row {
    metric: &'static Metric,
    /// Other metrics that the same file fills.
    also: &'static [&'static Metric],
    /// The file, below the folder of the device.
    pub(super) file: &'static str,
    pub(super) cadence: Cadence,
    /// The reason that the GPU may lack the value.
    absent: &'static str,
    pub(super) read: fn(&Card, &mut Readings) -> io::Result<()>,
}

const PERCENT: f64 = 0.01;
const MICRO: f64 = 1e-6;
const MEGA: f64 = 1e6;
/// Bytes per gigatransfer: a lane carries one bit at a time.
const BYTES_PER_GIGATRANSFER: f64 = 1e9 / 8.0;

const NO_SENSOR: &str = "the GPU has no such sensor";
const NO_LINK: &str = "the GPU is not on PCI Express";
const NO_RAS: &str = "the GPU does not count memory errors";

/// A row of a file with one value of one series.
macro_rules! value {
    ($metric:ident, $labels:expr, $file:literal, $cadence:ident, $absent:expr, $read:expr) => {
        Row {
            metric: &metric::$metric,
            also: &[],
            file: $file,
            cadence: $cadence,
            absent: $absent,
            read: |card, out| {
                let read: fn(&Card) -> io::Result<f64> = $read;
                out.now(&metric::$metric, Labels::fixed($labels), read(card)?);
                Ok(())
            },
        }
    };
}

pub(super) static ROWS: &[Row] = &[
    value!(
        GPU_UTILIZATION,
        &[(&GPU_TASK, "general")],
        "gpu_busy_percent",
        Tick,
        NO_SENSOR,
        |card| Ok(card.number("gpu_busy_percent")? * PERCENT)
    ),
    value!(
        GPU_MEMORY_ACTIVITY,
        &[],
        "mem_busy_percent",
        Tick,
        NO_SENSOR,
        |card| Ok(card.number("mem_busy_percent")? * PERCENT)
    ),
    Row {
        metric: &metric::GPU_MEMORY_USED,
        also: &[&metric::GPU_MEMORY_FREE, &metric::GPU_MEMORY_LIMIT],
        file: "mem_info_vram_used",
        cadence: Tick,
        absent: "the driver has no memory counters",
        read: |card, out| {
            let (used, limit) = (
                card.number("mem_info_vram_used")?,
                card.number("mem_info_vram_total")?,
            );
            out.now(&metric::GPU_MEMORY_USED, Labels::default(), used);
            out.now(&metric::GPU_MEMORY_FREE, Labels::default(), limit - used);
            out.now(&metric::GPU_MEMORY_LIMIT, Labels::default(), limit);
            Ok(())
        },
    },
    Row {
        metric: &metric::GPU_POWER,
        also: &[],
        file: "hwmon/power1_input",
        cadence: Tick,
        absent: NO_SENSOR,
        read: |card, out| {
            static INSTANT: Fixed = &[(&GPU_POWER_READING, "instant")];
            static AVERAGE: Fixed = &[(&GPU_POWER_READING, "average")];
            let instant = card.sensor("power1_input").map(|watts| (INSTANT, watts));
            let (reading, microwatts) =
                instant.or_else(|_| card.sensor("power1_average").map(|watts| (AVERAGE, watts)))?;
            out.now(&metric::GPU_POWER, Labels::fixed(reading), microwatts * MICRO);
            Ok(())
        },
    },
    value!(
        GPU_AVERAGE_POWER,
        &[],
        "hwmon/power1_average",
        Tick,
        "the GPU has only an instant value, like all from MI300 on",
        |card| Ok(card.sensor("power1_average")? * MICRO)
    ),
    value!(
        GPU_POWER_LIMIT,
        &[(&GPU_POWER_LIMIT_KIND, "enforced")],
        "hwmon/power1_cap",
        Infrequent,
        "the power is not managed",
        |card| Ok(card.sensor("power1_cap")? * MICRO)
    ),
    value!(
        GPU_POWER_LIMIT,
        &[(&GPU_POWER_LIMIT_KIND, "default")],
        "hwmon/power1_cap_default",
        Infrequent,
        "the power is not managed",
        |card| Ok(card.sensor("power1_cap_default")? * MICRO)
    ),
    value!(
        GPU_TEMPERATURE,
        &[(&GPU_TEMPERATURE_SENSOR, "gpu")],
        "hwmon/temp1_input (edge, else junction)",
        Tick,
        NO_SENSOR,
        |card| card
            .temperature("edge", "input")
            .or_else(|_| card.temperature("junction", "input"))
    ),
    value!(
        GPU_TEMPERATURE,
        &[(&GPU_TEMPERATURE_SENSOR, "memory")],
        "hwmon/temp3_input (mem)",
        Tick,
        NO_SENSOR,
        |card| card.temperature("mem", "input")
    ),
    value!(
        GPU_TEMPERATURE_LIMIT,
        &[(&GPU_TEMPERATURE_LIMIT_KIND, "shutdown")],
        "hwmon/temp2_emergency (junction)",
        Once,
        "the GPU does not report it",
        |card| card.temperature("junction", "emergency")
    ),
    Row {
        metric: &metric::GPU_FAN_SPEED,
        also: &[],
        file: "hwmon/fan1_input",
        cadence: Infrequent,
        absent: "the GPU has no fan of its own: the server cools it",
        read: |card, out| {
            let per_second = card.sensor("fan1_input")? / 60.0;
            out.now(
                &metric::GPU_FAN_SPEED,
                Labels::numbered(&[], &GPU_FAN_INDEX, 0),
                per_second,
            );
            Ok(())
        },
    },
    value!(
        GPU_CLOCK_FREQUENCY,
        &[(&GPU_CLOCK_DOMAIN, "graphics")],
        "hwmon/freq1_input",
        Tick,
        NO_SENSOR,
        |card| card.sensor("freq1_input")
    ),
    value!(
        GPU_CLOCK_FREQUENCY,
        &[(&GPU_CLOCK_DOMAIN, "memory")],
        "hwmon/freq2_input",
        Tick,
        NO_SENSOR,
        |card| card.sensor("freq2_input")
    ),
    Row {
        metric: &metric::GPU_CLOCK_LIMIT,
        also: &[],
        file: "pp_dpm_sclk",
        cadence: Infrequent,
        absent: "the clock is not managed",
        read: |card, out| {
            let labels: Fixed = &[(&GPU_CLOCK_DOMAIN, "graphics"), (&GPU_CLOCK_LIMIT_KIND, "max")];
            highest_level(card, "pp_dpm_sclk", labels, out)
        },
    },
    Row {
        metric: &metric::GPU_CLOCK_LIMIT,
        also: &[],
        file: "pp_dpm_mclk",
        cadence: Infrequent,
        absent: "the clock is not managed",
        read: |card, out| {
            let labels: Fixed = &[(&GPU_CLOCK_DOMAIN, "memory"), (&GPU_CLOCK_LIMIT_KIND, "max")];
            highest_level(card, "pp_dpm_mclk", labels, out)
        },
    },
    Row {
        metric: &metric::GPU_PCIE_SPEED,
        also: &[&metric::GPU_PCIE_GENERATION],
        file: "current_link_speed",
        cadence: Infrequent,
        absent: NO_LINK,
        read: |card, out| link_speed(card, "current_link_speed", &[(&GPU_LINK_READING, "current")], out),
    },
    Row {
        metric: &metric::GPU_PCIE_SPEED,
        also: &[&metric::GPU_PCIE_GENERATION],
        file: "max_link_speed",
        cadence: Once,
        absent: NO_LINK,
        read: |card, out| link_speed(card, "max_link_speed", &[(&GPU_LINK_READING, "max")], out),
    },
    value!(
        GPU_PCIE_WIDTH,
        &[(&GPU_LINK_READING, "current")],
        "current_link_width",
        Infrequent,
        NO_LINK,
        |card| card.number("current_link_width")
    ),
    value!(
        GPU_PCIE_WIDTH,
        &[(&GPU_LINK_READING, "max")],
        "max_link_width",
        Once,
        NO_LINK,
        |card| card.number("max_link_width")
    ),
    Row {
        metric: &metric::GPU_PCIE_REPLAYS,
        also: &[],
        file: "pcie_replay_count",
        cadence: Infrequent,
        absent: "the GPU does not count replays here, as from MI300 on",
        read: |card, out| {
            let raw = integer(&card.text("pcie_replay_count")?)?;
            out.total(&metric::GPU_PCIE_REPLAYS, Labels::default(), raw, 1.0);
            Ok(())
        },
    },
    Row {
        metric: &metric::GPU_ECC_ERRORS,
        also: &[],
        file: "ras/*_err_count",
        cadence: Infrequent,
        absent: NO_RAS,
        read: |card, out| {
            let errors = card.all_errors()?;
            total_errors(
                errors,
                &metric::GPU_ECC_ERRORS,
                [
                    &[(&GPU_ECC_SEVERITY, "corrected")],
                    &[(&GPU_ECC_SEVERITY, "uncorrected")],
                ],
                out,
            );
            Ok(())
        },
    },
    Row {
        metric: &metric::GPU_ECC_LOCATION_ERRORS,
        also: &[],
        file: "ras/umc_err_count",
        cadence: Infrequent,
        absent: NO_RAS,
        read: |card, out| {
            let errors = errors(&card.text("ras/umc_err_count")?)?;
            total_errors(
                errors,
                &metric::GPU_ECC_LOCATION_ERRORS,
                [
                    &[(&GPU_ECC_SEVERITY, "corrected"), (&GPU_ECC_LOCATION, "dram")],
                    &[(&GPU_ECC_SEVERITY, "uncorrected"), (&GPU_ECC_LOCATION, "dram")],
                ],
                out,
            );
            Ok(())
        },
    },
];

/// Errors since the driver was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Errors {
    corrected: u64,
    uncorrected: u64,
}

impl Row {
    pub(super) fn unavailable(&self, reason: Reason) -> Unavailable {
        let others = ROWS.iter().filter(|row| row.file != self.file);
        let fills = |row: &Row| row.metric.ordinal == self.metric.ordinal;
        let in_table = TABLE_ROWS
            .iter()
            .any(|row| row.metric.ordinal == self.metric.ordinal);
        Unavailable {
            metric: self.metric,
            call: self.file,
            reason,
            meaning: self.absent,
            // If both lack the value, the row of `TABLE_ROWS` reports it.
            partly: others.clone().any(fills) || in_table,
        }
    }
}

impl Card {
    /// Returns the sum of the errors of all blocks that count them.
    fn all_errors(&self) -> io::Result<Errors> {
        let mut sum = Errors::default();
        for file in self.files("ras")? {
            if file.ends_with("_err_count") {
                let of_block = errors(&self.text(&format!("ras/{file}"))?)?;
                sum.corrected += of_block.corrected;
                sum.uncorrected += of_block.uncorrected;
            }
        }
        Ok(sum)
    }
}

/// Returns the table as Markdown.
pub fn markdown() -> String {
    let mut out = String::from("| metric | file | read | without a value |\n|---|---|---|---|\n");
    for row in ROWS {
        let also: String = row
            .also
            .iter()
            .map(|metric| format!(", `{}`", metric.name))
            .collect();
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}`{also} | `{}` | {} | {} |",
            row.metric.name,
            row.file,
            every(row.cadence),
            row.absent
        );
    }
    for row in TABLE_ROWS {
        // Writing into a String cannot fail.
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {} | {} |",
            row.metric.name,
            row.field,
            every(row.cadence),
            row.absent
        );
    }
    let rest = [
        (
            &metric::GPU_THROTTLE_ACTIVE,
            table_rows::THROTTLE,
            "every interval",
            table_rows::NO_THROTTLE,
        ),
        (
            &metric::GPU_THROTTLE_TIME,
            table_rows::RESIDENCIES,
            "every interval",
            table_rows::NO_RESIDENCIES,
        ),
        (
            &metric::GPU_ENERGY,
            "gpu_metrics",
            "every interval",
            energy::ABSENT,
        ),
        (
            &metric::GPU_PROCESS_MEMORY,
            compute::PROCESSES,
            "every 5 s",
            compute::ABSENT,
        ),
    ];
    for (metric, file, every, absent) in rest {
        let _ = writeln!(out, "| `{}` | `{file}` | {every} | {absent} |", metric.name);
    }
    out
}

fn every(cadence: Cadence) -> &'static str {
    match cadence {
        Tick => "every interval",
        Infrequent => "every 5 s",
        Once => "once",
    }
}

/// Records the highest level of a clock. Each line has one level, such as `1: 2100Mhz *`.
fn highest_level(card: &Card, file: &str, labels: Fixed, out: &mut Readings) -> io::Result<()> {
    let text = card.text(file)?;
    let level = |line: &str| {
        let (_, frequency) = line.split_once(": ")?;
        let end = frequency.find(|next: char| !next.is_ascii_digit() && next != '.')?;
        frequency[..end].parse::<f64>().ok()
    };
    let highest = text.lines().filter_map(level).max_by(f64::total_cmp);
    let megahertz = highest.ok_or_else(|| unknown(file, &text))?;
    out.now(&metric::GPU_CLOCK_LIMIT, Labels::fixed(labels), megahertz * MEGA);
    Ok(())
}

/// Records the speed of a lane, such as `16.0 GT/s PCIe`, and the generation with this speed.
fn link_speed(card: &Card, file: &str, labels: Fixed, out: &mut Readings) -> io::Result<()> {
    let text = card.text(file)?;
    let gigatransfers = text
        .split(' ')
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    let gigatransfers = gigatransfers.ok_or_else(|| unknown(file, &text))?;
    let bytes = gigatransfers * BYTES_PER_GIGATRANSFER;
    out.now(&metric::GPU_PCIE_SPEED, Labels::fixed(labels), bytes);
    let generation = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0]
        .iter()
        .position(|speed| *speed == gigatransfers);
    if let Some(before) = generation {
        let generation = (before + 1) as f64;
        out.now(&metric::GPU_PCIE_GENERATION, Labels::fixed(labels), generation);
    }
    Ok(())
}

fn total_errors(
    errors: Errors,
    metric: &'static Metric,
    [corrected, uncorrected]: [Fixed; 2],
    out: &mut Readings,
) {
    out.total(metric, Labels::fixed(corrected), errors.corrected, 1.0);
    out.total(metric, Labels::fixed(uncorrected), errors.uncorrected, 1.0);
}

/// Parses the errors of a block: `ue: 0` and `ce: 0`.
fn errors(text: &str) -> io::Result<Errors> {
    let count = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    };
    let (uncorrected, corrected) = count("ue").zip(count("ce")).ok_or_else(|| unknown("ras", text))?;
    Ok(Errors {
        corrected: integer(corrected)?,
        uncorrected: integer(uncorrected)?,
    })
}

fn integer(text: &str) -> io::Result<u64> {
    text.trim().parse().map_err(|_| unknown("a counter", text))
}

fn unknown(file: &str, text: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("{file} has an unknown form: {text:?}"),
    )
}
