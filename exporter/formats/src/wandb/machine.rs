//! What wandb measures of the machine by itself (`core/pkg/monitor` of wandb). Keys without a metric are kept under their names.

use pulsetrain_mapping::RecordTable;

/// The keys of the system metrics.
pub(super) static ROWS: RecordTable = RecordTable::new("wandb-system", "system");
