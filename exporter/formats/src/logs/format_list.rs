//! The list of all formats. No other file names them: a new format is its own file and one row here.

use super::{
    Begin, LogFormat, generic, huggingface, kempnerforge, maxtext, megatron, surogate, torchspec, torchtitan,
    trainers::trainer, tunix,
};
use crate::{tensorboard, tunix_trace, wandb};

/// Every format that is known.
pub static FORMATS: &[LogFormat] = &[
    surogate::FORMAT,
    surogate::console::FORMAT,
    surogate::jsonl::FORMAT,
    maxtext::FORMAT,
    maxtext::metrics_file::FORMAT,
    maxtext::entries::FORMAT,
    kempnerforge::FORMAT,
    torchspec::FORMAT,
    tunix::FORMAT,
    tunix::otel::FORMAT,
    huggingface::FORMAT,
    huggingface::state::FORMAT,
    torchtitan::FORMAT,
    torchtitan::structured::FORMAT,
    megatron::FORMAT,
    tunix_trace::GROUPS_FORMAT,
    tunix_trace::TIMELINES_FORMAT,
    tensorboard::FORMAT,
    wandb::FORMAT,
    trainer!("verl", "console of verl"),
    trainer!("nanogpt", "console of nanoGPT"),
    trainer!("nanochat", "console of nanochat"),
    trainer!("deepspeed", "console of DeepSpeed"),
    trainer!("llamafactory", "trainer_log.jsonl of LLaMA-Factory"),
    trainer!("lightning", "metrics.csv of Lightning and litgpt"),
    trainer!("torchtune", "DiskLogger and StdoutLogger of torchtune"),
    trainer!("openrlhf", "console of OpenRLHF"),
    trainer!("litgpt", "console of litgpt"),
    trainer!("composer", "console and log file of Composer"),
    trainer!("llmc", "console and main.log of llm.c"),
    trainer!("keras", "progress bars of Keras"),
    trainer!("nccl-inspector", "JSON of NCCL Inspector"),
    generic::JSON,
    generic::KEY_VALUE,
    generic::TEXT,
    generic::CSV,
    generic::GENERIC,
];

/// The format of a name.
///
/// # Errors
/// The names of all formats, if there is none of this name.
pub fn format_by_name(name: &str) -> Result<&'static LogFormat, String> {
    FORMATS
        .iter()
        .find(|format| format.name == name)
        .ok_or_else(format_names)
}

/// The names of all formats, for messages.
pub fn format_names() -> String {
    FORMATS
        .iter()
        .map(|format| format.name)
        .collect::<Vec<_>>()
        .join(", ")
}
