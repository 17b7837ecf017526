//! Lists every file of the corpus, with the number of values of each log.

use crate::{
    readers::{self, Reader},
    series,
};

/// The log of a training system.
#[derive(Clone, Copy)]
pub(super) struct Log {
    pub(super) format: &'static str,
    /// Reads the complete log with the test's own code.
    pub(super) reader: Reader,
    /// The table of the expected series.
    pub(super) table: &'static str,
    /// The number of values in it.
    pub(super) values: usize,
    /// The rules that leave values out, with their counts.
    pub(super) left_out: &'static [(&'static str, u64)],
    /// The prefixes of metrics that are derived from several values.
    pub(super) derived: &'static [&'static str],
}

impl Log {
    const fn of(format: &'static str, reader: Reader, table: &'static str) -> Self {
        Self {
            format,
            reader,
            table,
            values: 0,
            left_out: &[],
            derived: &[],
        }
    }

    const fn with_values(self, values: usize) -> Self {
        Self { values, ..self }
    }

    const fn leaves_out(self, left_out: &'static [(&'static str, u64)]) -> Self {
        Self { left_out, ..self }
    }

    const fn derives(self, derived: &'static [&'static str]) -> Self {
        Self { derived, ..self }
    }
}

const ANY_JSON: Log = Log::of("json", readers::any_json, series::ANY);
const ANY_PAIRS: Log = Log::of("keyvalue", readers::any_pairs, series::ANY);
const EVENT_FILE: Log = Log::of("tensorboard", readers::event_file, series::TAGS);
const GOODPUT: Log = Log::of("maxtext-goodput", readers::goodput_entries, series::GOODPUT);
const HF_STATE: Log = Log::of("hf-trainer-state", readers::hf_state, series::HF_TRAINER);
const HF_TRAINER: Log = Log::of("hf-trainer", readers::hf_trainer, series::HF_TRAINER);
const KEMPNERFORGE: Log = Log::of("kempnerforge", readers::kempnerforge, series::KEMPNERFORGE);
const MAXTEXT: Log = Log::of("maxtext", readers::maxtext, series::MAXTEXT);
const MAXTEXT_METRICS: Log = Log::of("maxtext-metrics", readers::maxtext_metrics, series::TAGS);
const MEGATRON: Log = Log::of("megatron", readers::megatron, series::MEGATRON);
const SUROGATE: Log = Log::of("surogate", readers::surogate, series::SUROGATE);
const SUROGATE_CONSOLE: Log = Log::of(
    "surogate-console",
    readers::surogate_console,
    series::SUROGATE_CONSOLE,
);
const SUROGATE_JSONL: Log = Log::of("surogate-jsonl", readers::surogate_jsonl, series::SUROGATE);
const TORCHSPEC: Log = Log::of("torchspec", readers::torchspec, series::TORCHSPEC);
const TORCHTITAN: Log = Log::of("torchtitan", readers::torchtitan, series::TORCHTITAN);
const TORCHTITAN_STRUCTURED: Log = Log::of(
    "torchtitan-structured",
    readers::torchtitan_structured,
    series::TORCHTITAN,
);
const TUNIX: Log = Log::of("tunix", readers::tunix, series::TUNIX);
const TUNIX_CONSOLE: Log = Log::of("tunix-otel", readers::tunix_console, series::TAGS);
const TUNIX_OTLP: Log = Log::of("tunix-otel", readers::tunix_otlp, series::TAGS);
const TUNIX_TRACE: Log = Log::of("tunix-trace", readers::trace, series::ANY);
const TUNIX_TRACE_V2: Log = Log::of("tunix-trace-v2", readers::trace, series::ANY);
const WANDB: Log = Log::of("wandb", readers::wandb, series::TAGS);

/// Every log, in the order of their names.
pub(super) static LOGS: &[(&str, Log)] = &[
    ("hf-trainer/stdout.log", HF_TRAINER.with_values(46)),
    (
        "hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0",
        EVENT_FILE.with_values(47),
    ),
    (
        "hf-trainer/trainer_state.json",
        HF_STATE
            .with_values(42)
            .leaves_out(&[("said_again", 3), ("trainer_bookkeeping", 4)]),
    ),
    ("kempnerforge/dense.stdout", KEMPNERFORGE.with_values(111)),
    (
        "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0",
        EVENT_FILE.with_values(188),
    ),
    ("maxtext/demo.metrics.jsonl", MAXTEXT_METRICS.with_values(204)),
    (
        "maxtext/demo.stderr",
        MAXTEXT.with_values(91).leaves_out(&[("not_measured", 1)]),
    ),
    ("maxtext/demo.stdout", MAXTEXT.with_values(3)),
    (
        "maxtext/metrics_step_000000_to_step_000004.txt",
        MAXTEXT_METRICS.with_values(85),
    ),
    (
        "maxtext/metrics_step_000005_to_step_000009.txt",
        MAXTEXT_METRICS.with_values(85),
    ),
    (
        "maxtext/metrics_step_000010_to_step_000011.txt",
        MAXTEXT_METRICS.with_values(34),
    ),
    (
        "maxtext/tensorboard/events.out.tfevents.1795221261.vm",
        EVENT_FILE.with_values(204),
    ),
    (
        "surogate/console_dense.log",
        SUROGATE_CONSOLE
            .with_values(262)
            .leaves_out(&[("tokens_of_one_file", 3)]),
    ),
    (
        "surogate/console_moe.log",
        SUROGATE_CONSOLE
            .with_values(412)
            .leaves_out(&[("tokens_of_one_file", 3)]),
    ),
    (
        "surogate/console_verbose.log",
        SUROGATE_CONSOLE
            .with_values(304)
            .leaves_out(&[("tokens_of_one_file", 3)]),
    ),
    ("surogate/training_dense.json", SUROGATE.with_values(338)),
    ("surogate/training_moe.json", SUROGATE.with_values(668)),
    (
        "torchspec/perf.stderr",
        TORCHSPEC
            .with_values(582)
            .leaves_out(&[
                ("bar_drawn_again", 1),
                ("not_measured", 1),
                ("wait_told_by_timing", 11),
            ])
            .derives(&["perf.bottleneck"]),
    ),
    (
        "torchspec/perf.wandb",
        WANDB
            .with_values(1123)
            .leaves_out(&[
                ("console_output", 63),
                ("step_again", 120),
                ("wandb_bookkeeping", 20),
                ("wandb_clock", 322),
                ("wandb_summary", 1231),
            ])
            .derives(&["perf.bottleneck"]),
    ),
    (
        "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0",
        EVENT_FILE
            .with_values(1111)
            .leaves_out(&[("step_again", 120)])
            .derives(&["perf.bottleneck"]),
    ),
    (
        "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl",
        TORCHTITAN_STRUCTURED
            .with_values(6)
            .leaves_out(&[("start_told_by_end", 6)]),
    ),
    (
        "tunix/colocated/stderr_absl.log",
        TUNIX.with_values(27).leaves_out(&[("private_content", 30)]),
    ),
    (
        "tunix/colocated/tensorboard/events.out.tfevents.1795219881.vm",
        EVENT_FILE
            .with_values(494)
            .leaves_out(&[("jax_time_of_day", 141)]),
    ),
    (
        "tunix/colocated/trace/perfetto_trace_1795219880.pb",
        TUNIX_TRACE
            .with_values(0)
            .leaves_out(&[("group_of_another_timeline", 16)])
            .derives(&["perf."]),
    ),
    (
        "tunix/colocated/trace/perfetto_trace_v2_1795219880.pb",
        TUNIX_TRACE_V2.with_values(0).derives(&["perf."]),
    ),
    (
        "tunix/rollout1_actor2/stderr_absl.log",
        TUNIX.with_values(27).leaves_out(&[("private_content", 30)]),
    ),
    (
        "tunix/rollout1_actor2/tensorboard/events.out.tfevents.1795219969.vm",
        EVENT_FILE
            .with_values(534)
            .leaves_out(&[("jax_time_of_day", 150)]),
    ),
    (
        "tunix/rollout1_actor2/trace/perfetto_trace_1795219968.pb",
        TUNIX_TRACE
            .with_values(0)
            .leaves_out(&[("group_of_another_timeline", 56)])
            .derives(&["perf."]),
    ),
    (
        "tunix/rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
        TUNIX_TRACE_V2.with_values(0).derives(&["perf."]),
    ),
    ("written/any.jsonl", ANY_JSON.with_values(180)),
    ("written/any.log", ANY_PAIRS.with_values(180)),
    (
        "written/goodput/events.out.tfevents.1795222810.vm",
        EVENT_FILE.with_values(17),
    ),
    ("written/goodput_entries.json", GOODPUT.with_values(22)),
    ("written/goodput_entries.jsonl", GOODPUT.with_values(22)),
    ("written/hf_trainer_trl.log", HF_TRAINER.with_values(593)),
    (
        "written/maxtext.log",
        MAXTEXT
            .with_values(106)
            .leaves_out(&[("share_of_used_and_limit", 1)]),
    ),
    ("written/megatron.log", MEGATRON.with_values(520)),
    ("written/surogate_metrics.jsonl", SUROGATE_JSONL.with_values(276)),
    (
        "written/torchspec.log",
        TORCHSPEC
            .with_values(110)
            .leaves_out(&[
                ("eval_told_with_its_step", 3),
                ("not_measured", 3),
                ("passes_told_by_another_line", 4),
                ("wait_not_over", 1),
                ("wait_told_by_timing", 3),
            ])
            .derives(&["perf.bottleneck", "perf.weight_sync_time"]),
    ),
    (
        "written/torchtitan.log",
        TORCHTITAN.with_values(339).leaves_out(&[("not_measured", 1)]),
    ),
    (
        "written/torchtitan_structured.jsonl",
        TORCHTITAN_STRUCTURED
            .with_values(9)
            .leaves_out(&[("start_told_by_end", 33)]),
    ),
    (
        "written/tunix_otel.jsonl",
        TUNIX_OTLP
            .with_values(59)
            .leaves_out(&[("exported_again", 4), ("step_again", 24)]),
    ),
    (
        "written/tunix_otel.txt",
        TUNIX_CONSOLE
            .with_values(59)
            .leaves_out(&[("exported_again", 4), ("step_again", 24)]),
    ),
];

/// The folder of logs that have no reader here.
pub(super) const UNKNOWN_TRAINERS: &str = "generic/";

/// Files of no training system: a file, or a folder with its `/`, the number of files, and their content.
pub(super) static NO_LOGS: &[(&str, usize, &str)] = &[
    ("backends/", 7, "an answer of a backend"),
    (
        UNKNOWN_TRAINERS,
        23,
        "logs of unknown trainers: `generic` has what is expected of each",
    ),
    ("hf-trainer/stderr.log", 1, "warnings"),
    ("hw-conventions/", 9, "names that OpenTelemetry has settled"),
    (
        "kempnerforge/dense.stderr",
        1,
        "wandb's summary of every series, which standard output has too",
    ),
    (
        "kineto/",
        3,
        "a profile of PyTorch, OTLP of its run, and how they were made",
    ),
    ("kubelet/", 2, "the kubelet's answers about its pods"),
    (
        "nsight/",
        4,
        "an export of Nsight Systems, OTLP of its run, and how they were made",
    ),
    ("nvidia-smi/", 13, "the output of nvidia-smi for a GPU"),
    ("otlp/", 9, "OTLP, or how it was made"),
    ("perfetto/", 1, "what a trace is written from"),
    (
        "tunix/colocated/perf_metrics_export_v1.json",
        1,
        "what the metrics of the traces are compared with",
    ),
    (
        "tunix/rollout1_actor2/perf_metrics_export_v1.json",
        1,
        "what the metrics of the traces are compared with",
    ),
    ("written/README.md", 1, "a note"),
];
