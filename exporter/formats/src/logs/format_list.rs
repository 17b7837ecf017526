//! The list of all formats. No other file names them: a new format is its own file and one row here.

use super::{
    LogFormat, ParserFactory, generic, huggingface, kempnerforge, maxtext, megatron, nemo_lens, surogate,
    torchspec, torchtitan, trainers, trainers::trainer_format, tunix,
};
use crate::{tensorboard, tunix_trace, wandb};

/// Every known format.
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
    nemo_lens::FORMAT,
    tunix_trace::GROUPS_FORMAT,
    tunix_trace::TIMELINES_FORMAT,
    tensorboard::FORMAT,
    wandb::FORMAT,
    trainer_format!("verl", "console of verl"),
    trainer_format!("nanogpt", "console of nanoGPT"),
    trainer_format!("nanochat", "console of nanochat"),
    trainer_format!("deepspeed", "console of DeepSpeed"),
    trainer_format!("llamafactory", "trainer_log.jsonl of LLaMA-Factory"),
    trainer_format!("lightning", "metrics.csv of Lightning and litgpt"),
    trainer_format!("torchtune", "DiskLogger and StdoutLogger of torchtune"),
    trainer_format!("openrlhf", "console of OpenRLHF"),
    trainer_format!("litgpt", "console of litgpt"),
    trainer_format!("composer", "console and log file of Composer"),
    trainer_format!("llmc", "console and main.log of llm.c"),
    trainer_format!("keras", "progress bars of Keras"),
    trainer_format!("nccl-inspector", "JSON of NCCL Inspector and RCCL Inspector"),
    trainer_format!("easyr1", "experiment_log.jsonl of EasyR1"),
    trainer_format!("nemo", "console of NeMo 2"),
    trainer_format!("nv-one-logger", "JSON lines of nv-one-logger"),
    trainer_format!("xgboost", "console of XGBoost"),
    trainer_format!("lightgbm", "console of LightGBM"),
    trainer_format!("catboost", "console of CatBoost"),
    trainer_format!("scikit-learn", "console of scikit-learn"),
    trainer_format!("stable-baselines3", "tables of Stable-Baselines3"),
    trainer_format!("clu", "LoggingWriter of CLU, as examples of Flax use it"),
    generic::JSON,
    generic::KEY_VALUE,
    generic::TEXT,
    generic::CSV,
    generic::GENERIC,
];

/// Returns the format with a name, or `None` if no format has it.
pub fn format_by_name(name: &str) -> Option<&'static LogFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Returns the names of all formats, for messages.
pub fn format_names() -> String {
    FORMATS
        .iter()
        .map(|format| format.name)
        .collect::<Vec<_>>()
        .join(", ")
}
