//! The metrics of an AMD GPU that are read from the table `gpu_metrics`, because no other file has them.

use pulsetrain_semconv::{
    Metric,
    attribute::{GPU_IO_DIRECTION, GPU_LINK_INDEX, GPU_THROTTLE_REASON},
    metric,
};

use super::metrics_table::{Field, MetricsTable, XGMI_LINKS};
use crate::{
    Reason, Unavailable,
    reading::{
        Cadence::{self, Infrequent, Tick},
        Fixed, Labels, Readings,
    },
};

/// A row.
pub(super) struct TableRow {
    pub(super) metric: &'static Metric,
    /// The field, as the kernel names it.
    pub(super) field: &'static str,
    pub(super) cadence: Cadence,
    /// The reason that the GPU may lack the value.
    pub(super) absent: &'static str,
    /// Reads the metric; `None` if the table does not have it.
    pub(super) read: fn(&MetricsTable, &mut Readings) -> Option<()>,
}

const KIB: f64 = 1024.0;
/// Bytes per gigabit.
const BYTES_PER_GIGABIT: f64 = 1e9 / 8.0;

const NO_XGMI: &str = "the GPU has no XGMI links, or a table older than format 1.4";

/// Reasons and their bits in the throttle status: limits of power, of currents and reliability, and of temperatures.
const THROTTLERS: [(Fixed, u64); 3] = [
    (&[(&GPU_THROTTLE_REASON, "power_cap")], 0xff),
    (&[(&GPU_THROTTLE_REASON, "other_cap")], 0x0300_0000_00ff_0000),
    (&[(&GPU_THROTTLE_REASON, "thermal_cap")], 0xffff_0000_0000),
];

pub(super) static TABLE_ROWS: &[TableRow] = &[
    TableRow {
        metric: &metric::GPU_PCIE_REPLAYS,
        field: "gpu_metrics (pcie_replay_count_acc)",
        cadence: Infrequent,
        absent: "the table is older than format 1.4",
        read: |table, out| {
            let raw = table.value(Field::PcieReplays)?;
            out.total(&metric::GPU_PCIE_REPLAYS, Labels::default(), raw, 1.0);
            Some(())
        },
    },
    TableRow {
        metric: &metric::GPU_PCIE_RECOVERIES,
        field: "gpu_metrics (pcie_l0_to_recov_count_acc)",
        cadence: Infrequent,
        absent: "the table is older than format 1.4",
        read: |table, out| {
            let raw = table.value(Field::PcieRecoveries)?;
            out.total(&metric::GPU_PCIE_RECOVERIES, Labels::default(), raw, 1.0);
            Some(())
        },
    },
    TableRow {
        metric: &metric::GPU_XGMI_IO,
        field: "gpu_metrics (xgmi_read_data_acc, xgmi_write_data_acc)",
        cadence: Tick,
        absent: NO_XGMI,
        read: |table, out| {
            let directions: [(Fixed, Field); 2] = [
                (&[(&GPU_IO_DIRECTION, "receive")], Field::XgmiRead),
                (&[(&GPU_IO_DIRECTION, "transmit")], Field::XgmiWritten),
            ];
            let mut found = None;
            for (direction, field) in directions {
                for (link, raw) in links(table, field) {
                    let labels = Labels::numbered(direction, &GPU_LINK_INDEX, link);
                    out.total(&metric::GPU_XGMI_IO, labels, raw, KIB);
                    found = Some(());
                }
            }
            found
        },
    },
    TableRow {
        metric: &metric::GPU_XGMI_UP,
        field: "gpu_metrics (xgmi_link_status)",
        cadence: Infrequent,
        absent: "the GPU has no XGMI links, or a table older than format 1.7, or is a virtual function",
        read: |table, out| {
            let mut found = None;
            // 2 is a state that a virtual function cannot know.
            for (link, state) in links(table, Field::XgmiState).filter(|(_, state)| *state < 2) {
                let labels = Labels::numbered(&[], &GPU_LINK_INDEX, link);
                out.now(&metric::GPU_XGMI_UP, labels, state as f64);
                found = Some(());
            }
            found
        },
    },
    TableRow {
        metric: &metric::GPU_XGMI_SPEED,
        field: "gpu_metrics (xgmi_link_width, xgmi_link_speed)",
        cadence: Infrequent,
        absent: NO_XGMI,
        read: |table, out| {
            let (lanes, gigabits) = (table.value(Field::XgmiWidth)?, table.value(Field::XgmiSpeed)?);
            let bytes = lanes as f64 * gigabits as f64 * BYTES_PER_GIGABIT;
            out.now(&metric::GPU_XGMI_SPEED, Labels::default(), bytes);
            Some(())
        },
    },
];

pub(super) const THROTTLE: &str = "gpu_metrics (indep_throttle_status, or *_residency_acc)";
pub(super) const NO_THROTTLE: &str =
    "the table has neither a status (format 1.3 of an MI200) nor residencies (formats from 1.6 on)";
pub(super) const RESIDENCIES: &str = "gpu_metrics (*_residency_acc)";
pub(super) const NO_RESIDENCIES: &str = "the table is older than format 1.6";

/// Records the throttle reasons from the throttle status; `None` if the table does not have it.
pub(super) fn record_status(table: &MetricsTable, out: &mut Readings) -> Option<()> {
    let status = table.value(Field::ThrottleStatus)?;
    for (reason, bits) in THROTTLERS {
        out.flag(&metric::GPU_THROTTLE_ACTIVE, reason, status & bits != 0);
    }
    Some(())
}

impl TableRow {
    pub(super) fn unavailable(&self, reason: Reason) -> Unavailable {
        Unavailable {
            metric: self.metric,
            call: self.field,
            reason,
            meaning: self.absent,
            partly: false,
        }
    }
}

/// Returns the values of the XGMI links that have one.
fn links(table: &MetricsTable, field: Field) -> impl Iterator<Item = (u32, u64)> {
    (0..XGMI_LINKS).filter_map(move |link| Some((link as u32, table.of_link(field, link)?)))
}
