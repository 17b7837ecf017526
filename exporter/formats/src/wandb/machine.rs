//! Maps wandb's own measurements of the machine (`core/pkg/monitor` of wandb). Keys without a metric keep their names.

use pulsetrain_mapping::RecordTable;

/// The keys of the system metrics.
pub(super) static ROWS: RecordTable = RecordTable::new("wandb-system", "system");
