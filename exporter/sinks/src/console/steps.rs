//! Extracts steps from a batch: the points of one run with the same time are a step.

use std::collections::BTreeMap;

use pulsetrain_otlp::{
    UnixNanos, WireError,
    walk::{self, AnyPoint},
};
use pulsetrain_run::{RunOrigin, SeriesKey, SeriesPoint};

use super::columns::{COLUMNS, Show, place};

/// The values that one run reported at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The id of the run.
    pub(super) run: String,
    /// The display name of the run.
    pub(super) name: String,
    /// The rank, or `None` for values of the complete run.
    pub(super) rank: Option<i64>,
    /// The time.
    pub(super) unix_nanos: UnixNanos,
    /// The values of the columns that it reported.
    pub(super) values: [Option<f64>; COLUMNS.len()],
    /// The points of sums and distributions with their columns. The value of such a column is their increase.
    pub(super) points: Vec<(usize, SeriesKey, SeriesPoint)>,
}

impl Step {
    /// Adds a point of a column. `key` is that of the metric.
    fn add(&mut self, column: usize, key: SeriesKey, point: &AnyPoint<'_, '_>) -> Result<(), WireError> {
        let is_increase = matches!(COLUMNS[column].show, Show::Sum | Show::Millis);
        match point.number() {
            Some(number) if !is_increase => self.values[column] = Some(number.as_f64()),
            _ => {
                let key = key.with_attributes(point.attributes())?;
                let point = SeriesPoint::from_point(point);
                self.points.extend(point.map(|point| (column, key, point)));
            }
        }
        Ok(())
    }
}

/// Returns the steps of a batch, in order of time within each run.
///
/// # Errors
/// The batch is not valid protobuf.
pub(super) fn steps(bytes: &[u8]) -> Result<Vec<Step>, WireError> {
    let mut steps: BTreeMap<(String, Option<i64>, UnixNanos), Step> = BTreeMap::new();
    for resource in walk::metrics(bytes) {
        let resource = resource?;
        let origin = RunOrigin::from_attributes(resource.attributes());
        let (run, rank) = (run_id(&origin), origin.rank);
        let name = origin.run_name.as_deref().unwrap_or_default();
        for metric in resource.items() {
            let metric = metric?;
            let Some(column) = metric.name.to_str().ok().and_then(place) else {
                continue;
            };
            let key = SeriesKey::new(metric.name.as_bytes());
            let key = rank.map_or(key, |rank| key.with_attribute(&rank.to_le_bytes()));
            metric.try_each_point(|point| {
                let unix_nanos = point.time();
                let step = steps.entry((run.clone(), rank, unix_nanos));
                let step = step.or_insert_with(|| Step {
                    run: run.clone(),
                    name: name.to_owned(),
                    rank,
                    unix_nanos,
                    ..Step::default()
                });
                step.add(column, key, &point)
            })?;
        }
    }
    let mut steps: Vec<Step> = steps.into_values().collect();
    steps.sort_by_key(|step| step.unix_nanos);
    Ok(steps)
}

/// Returns the id of a run, or an empty string.
pub(super) fn run_id(origin: &RunOrigin) -> String {
    origin.id().map(ToString::to_string).unwrap_or_default()
}
