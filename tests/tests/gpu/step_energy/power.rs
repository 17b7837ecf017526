//! The power of the GPU of `uneven_power`, and its energy.

/// The power in watts from a second of the scenario on.
const POWER: [(f64, f64); 7] = [
    (0.0, 100.0),
    (1.3, 700.0),
    (2.05, 350.0),
    (4.7, 690.0),
    (5.2, 90.0),
    (9.9, 500.0),
    (13.37, 250.0),
];

/// Removes the scenario's processes, whose pids may exist on this machine.
pub(crate) const ALONE: &str = "gpus: {each: {\"0\": {processes: []}}}";

/// Returns the energy of the GPU between two seconds, in joules.
pub(crate) fn joules(from: f64, to: f64) -> f64 {
    let ends = POWER
        .iter()
        .skip(1)
        .map(|(second, _)| *second)
        .chain([f64::INFINITY]);
    let parts = POWER.iter().zip(ends).map(|((start, watts), end)| {
        let (start, end) = (start.max(from), end.min(to));
        watts * (end - start).max(0.0)
    });
    parts.sum()
}
