//! Environment variables in which launchers (torchrun, Slurm, Open MPI, PMI) describe a run to its processes.

use pulsetrain_semconv::{Attribute, attribute};

/// The attributes of a Slurm job and the variables with their values; the first is the id of the job.
pub const SLURM: [(&Attribute, &str); 5] = [
    (&attribute::SLURM_JOB_ID, "SLURM_JOB_ID"),
    (&attribute::SLURM_JOB_NAME, "SLURM_JOB_NAME"),
    (&attribute::SLURM_JOB_USER, "SLURM_JOB_USER"),
    (&attribute::SLURM_PARTITION, "SLURM_JOB_PARTITION"),
    (&attribute::SLURM_CLUSTER_NAME, "SLURM_CLUSTER_NAME"),
];
/// The id of a run, for every process of the run.
pub const RUN_ID: &str = "PULSETRAIN_RUN_ID";
/// The id of a job, the same on every node.
pub const JOB_IDS: [&str; 4] = ["TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID"];
/// The rank of a process.
pub const RANKS: [&str; 4] = ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
/// The rank of a process on its host.
pub const LOCAL_RANKS: [&str; 4] = [
    "LOCAL_RANK",
    "SLURM_LOCALID",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
];
/// The number of ranks; in the order of the launchers in [`RANKS`].
pub const WORLD_SIZES: [&str; 4] = ["WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
/// The number of restarts.
pub const RESTARTS: [&str; 3] = ["PULSETRAIN_ATTEMPT", TORCHRUN_RESTARTS, "SLURM_RESTART_COUNT"];
/// torchrun's number of restarts. Each node counts its own (pytorch#108158), so the ranks of several nodes do not agree on it.
pub const TORCHRUN_RESTARTS: &str = "TORCHELASTIC_RESTART_COUNT";
/// torchrun's number of nodes.
pub const TORCHRUN_NODES: &str = "GROUP_WORLD_SIZE";
