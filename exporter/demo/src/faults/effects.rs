//! The effects of faults on the ranks, on the training metrics, and on the GPUs.

use crate::job::StepValues;

/// The effects of the active faults on a step.
#[derive(Clone, Debug)]
pub(crate) struct Effects {
    /// Factor on the compute time of each rank.
    pub(crate) slow: Vec<f64>,
    /// The time that every rank waits for its data, in steps.
    pub(crate) data_wait: f64,
    /// Capacity of the inference engines, as a multiple of the usual one.
    pub(crate) inference: f64,
    /// Changes of the training metrics, each with the number of steps since its fault began, from 1 on.
    pub(crate) values: Vec<(ValueChange, u64)>,
    /// Factor on the loss on held-out data.
    pub(crate) eval_loss: f64,
    /// Whether the trainer writes no checkpoints.
    pub(crate) holds_checkpoints: bool,
    /// Bytes that each rank has leaked.
    pub(crate) leaked_bytes: Vec<u64>,
    /// Allocations of GPU memory that fail in the step, of each rank.
    pub(crate) failed_allocations: Vec<u32>,
    /// Share of the memory of every host that other programs use.
    pub(crate) host_memory_used: f64,
    /// Whether each rank sends nothing.
    pub(crate) silent: Vec<bool>,
    /// XID errors: the rank whose GPU has it, and its code.
    pub(crate) xids: Vec<(usize, u64)>,
    /// The GPU of each rank.
    pub(crate) gpus: Vec<GpuCondition>,
}

/// Changes the values of a step, the given number of steps after the fault began, from 1 on.
pub(crate) type ValueChange = fn(&mut StepValues, u64);

/// The rank and the step at which a fault acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FaultContext {
    /// The rank of the fault, or of its GPU.
    pub(crate) rank: usize,
    /// Steps since it began, from 1 on.
    pub(crate) steps: u64,
    /// A random number of the fault.
    pub(crate) draw: u64,
}

/// The condition of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GpuCondition {
    /// Whether its cooling has failed.
    pub(crate) is_hot: bool,
    /// Whether the power brake of the server holds its clocks down.
    pub(crate) is_braked: bool,
    /// Its power limit in watts.
    pub(crate) power_limit: f64,
    /// Whether its memory is used up.
    pub(crate) is_full: bool,
    /// Lanes and generation of its PCI Express link.
    pub(crate) pcie_width: f64,
    pub(crate) pcie_generation: f64,
    /// An NVLink that is down.
    pub(crate) link_down: Option<u32>,
    /// Faults that last, by their value of `gpu.fault`.
    pub(crate) faults: Vec<&'static str>,
    /// The recovery action that the driver reports: a value of `gpu.recovery_action`.
    pub(crate) recovery_action: &'static str,
    /// Errors in each step.
    pub(crate) corrected_errors: f64,
    pub(crate) uncorrected_errors: f64,
    pub(crate) link_recoveries: f64,
    pub(crate) pcie_replays: f64,
}

impl Default for GpuCondition {
    fn default() -> Self {
        Self {
            is_hot: false,
            is_braked: false,
            power_limit: 700.0,
            is_full: false,
            pcie_width: 16.0,
            pcie_generation: 5.0,
            link_down: None,
            faults: Vec::new(),
            recovery_action: "none",
            corrected_errors: 0.0,
            uncorrected_errors: 0.0,
            link_recoveries: 0.0,
            pcie_replays: 0.0,
        }
    }
}

impl Effects {
    /// Returns the effects without a fault.
    pub(crate) fn none(ranks: usize) -> Self {
        Self {
            slow: vec![1.0; ranks],
            data_wait: 0.0,
            inference: 1.0,
            values: Vec::new(),
            eval_loss: 1.0,
            holds_checkpoints: false,
            leaked_bytes: vec![0; ranks],
            failed_allocations: vec![0; ranks],
            host_memory_used: 0.0,
            silent: vec![false; ranks],
            xids: Vec::new(),
            gpus: vec![GpuCondition::default(); ranks],
        }
    }
}
