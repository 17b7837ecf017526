//! A row a file of the corpus.

use crate::{
    readers::{self, Reader},
    series,
};

/// What a file of the corpus is.
pub(super) enum Holds {
    /// What a training system wrote.
    Log(Log),
    /// Something else.
    NoLog(&'static str),
}

/// What a training system wrote.
pub(super) struct Log {
    pub(super) format: &'static str,
    /// Says everything that is in it, by code of the test's own.
    pub(super) reader: Reader,
    /// What its names are to become.
    pub(super) table: &'static str,
    /// How many values it says.
    pub(super) values: usize,
    /// The rules that leave something out, and how much.
    pub(super) left_out: &'static [(&'static str, u64)],
    /// What the names of metrics begin with that are worked out from several values.
    pub(super) derived: &'static [&'static str],
}

const fn log(
    format: &'static str,
    reader: Reader,
    table: &'static str,
    values: usize,
    left_out: &'static [(&'static str, u64)],
    derived: &'static [&'static str],
) -> Holds {
    Holds::Log(Log {
        format,
        reader,
        table,
        values,
        left_out,
        derived,
    })
}

/// Every file, in the order of their names.
pub(super) static SAMPLES: &[(&str, Holds)] = &[
    (
        "backends/jaeger_api_traces.json",
        Holds::NoLog("an answer of a backend"),
    ),
    (
        "backends/jaeger_api_v3_trace.json",
        Holds::NoLog("an answer of a backend"),
    ),
    (
        "backends/jaeger_api_v3_traces.json",
        Holds::NoLog("an answer of a backend"),
    ),
    ("backends/sent.json", Holds::NoLog("an answer of a backend")),
    (
        "backends/tempo_api_traces.json",
        Holds::NoLog("an answer of a backend"),
    ),
    (
        "backends/tempo_api_v2_traces.json",
        Holds::NoLog("an answer of a backend"),
    ),
    (
        "backends/tempo_api_v2_traces_other.json",
        Holds::NoLog("an answer of a backend"),
    ),
    ("hf-trainer/stderr.log", Holds::NoLog("warnings")),
    (
        "hf-trainer/stdout.log",
        log(
            "hf-trainer",
            readers::hf_trainer,
            series::HF_TRAINER,
            46,
            &[],
            &[],
        ),
    ),
    (
        "hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0",
        log("tensorboard", readers::event_file, series::TAGS, 47, &[], &[]),
    ),
    (
        "hf-trainer/trainer_state.json",
        log(
            "hf-trainer-state",
            readers::hf_state,
            series::HF_TRAINER,
            41,
            &[],
            &[],
        ),
    ),
    (
        "hw-conventions/README.md",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/common-metrics.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/common.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/fan-metrics.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/gpu-metrics.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/network-metrics.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/network-registry.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/registry.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "hw-conventions/temperature-metrics.yaml",
        Holds::NoLog("names that OpenTelemetry has settled"),
    ),
    (
        "kempnerforge/dense.stderr",
        Holds::NoLog("what wandb printed: the last of every series, which standard output told"),
    ),
    (
        "kempnerforge/dense.stdout",
        log(
            "kempnerforge",
            readers::kempnerforge,
            series::KEMPNERFORGE,
            111,
            &[],
            &[],
        ),
    ),
    (
        "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0",
        log("tensorboard", readers::event_file, series::TAGS, 188, &[], &[]),
    ),
    (
        "kubelet/README.md",
        Holds::NoLog("what the kubelet says of its pods"),
    ),
    (
        "kubelet/podresources.proto",
        Holds::NoLog("what the kubelet says of its pods"),
    ),
    (
        "maxtext/demo.metrics.jsonl",
        log(
            "maxtext-metrics",
            readers::maxtext_metrics,
            series::TAGS,
            204,
            &[],
            &[],
        ),
    ),
    (
        "maxtext/demo.stderr",
        log("maxtext", readers::maxtext, series::MAXTEXT, 91, &[], &[]),
    ),
    (
        "maxtext/demo.stdout",
        log("maxtext", readers::maxtext, series::MAXTEXT, 3, &[], &[]),
    ),
    (
        "maxtext/metrics_step_000000_to_step_000004.txt",
        log(
            "maxtext-metrics",
            readers::maxtext_metrics,
            series::TAGS,
            85,
            &[],
            &[],
        ),
    ),
    (
        "maxtext/metrics_step_000005_to_step_000009.txt",
        log(
            "maxtext-metrics",
            readers::maxtext_metrics,
            series::TAGS,
            85,
            &[],
            &[],
        ),
    ),
    (
        "maxtext/metrics_step_000010_to_step_000011.txt",
        log(
            "maxtext-metrics",
            readers::maxtext_metrics,
            series::TAGS,
            34,
            &[],
            &[],
        ),
    ),
    (
        "maxtext/tensorboard/events.out.tfevents.1795221261.vm",
        log("tensorboard", readers::event_file, series::TAGS, 204, &[], &[]),
    ),
    ("otlp/README.md", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/collector.jsonl", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/everything.jsonl", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/llm_agent.jsonl", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/python_sdk.binpb", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/rust_sdk.binpb", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/sdk_corpus.py", Holds::NoLog("OTLP, or how it was made")),
    ("otlp/web_service.jsonl", Holds::NoLog("OTLP, or how it was made")),
    ("perfetto/rich.json", Holds::NoLog("what a trace is written from")),
    (
        "surogate/console_dense.log",
        log(
            "surogate-console",
            readers::surogate_console,
            series::SUROGATE_CONSOLE,
            262,
            &[("tokens_of_one_file", 3)],
            &[],
        ),
    ),
    (
        "surogate/console_moe.log",
        log(
            "surogate-console",
            readers::surogate_console,
            series::SUROGATE_CONSOLE,
            412,
            &[("tokens_of_one_file", 3)],
            &[],
        ),
    ),
    (
        "surogate/console_verbose.log",
        log(
            "surogate-console",
            readers::surogate_console,
            series::SUROGATE_CONSOLE,
            304,
            &[("tokens_of_one_file", 3)],
            &[],
        ),
    ),
    (
        "surogate/training_dense.json",
        log("surogate", readers::surogate, series::SUROGATE, 338, &[], &[]),
    ),
    (
        "surogate/training_moe.json",
        log("surogate", readers::surogate, series::SUROGATE, 668, &[], &[]),
    ),
    (
        "torchspec/perf.stderr",
        log(
            "torchspec",
            readers::torchspec,
            series::TORCHSPEC,
            582,
            &[("bar_drawn_again", 1), ("wait_told_by_timing", 11)],
            &["perf.bottleneck"],
        ),
    ),
    (
        "torchspec/perf.wandb",
        log(
            "wandb",
            readers::wandb,
            series::TAGS,
            1123,
            &[
                ("console_output", 63),
                ("step_again", 120),
                ("wandb_bookkeeping", 22),
                ("wandb_clock", 322),
                ("wandb_summary", 1231),
            ],
            &["perf.bottleneck"],
        ),
    ),
    (
        "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0",
        log(
            "tensorboard",
            readers::event_file,
            series::TAGS,
            1111,
            &[("step_again", 120)],
            &["perf.bottleneck"],
        ),
    ),
    (
        "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl",
        log(
            "torchtitan-structured",
            readers::torchtitan_structured,
            series::TORCHTITAN,
            6,
            &[("start_told_by_end", 6)],
            &[],
        ),
    ),
    (
        "tunix/colocated/perf_metrics_export_v1.json",
        Holds::NoLog("what the metrics of the traces are compared with"),
    ),
    (
        "tunix/colocated/stderr_absl.log",
        log(
            "tunix",
            readers::tunix,
            series::TUNIX,
            27,
            &[("private_content", 30)],
            &[],
        ),
    ),
    (
        "tunix/colocated/tensorboard/events.out.tfevents.1795219881.vm",
        log(
            "tensorboard",
            readers::event_file,
            series::TAGS,
            494,
            &[("jax_time_of_day", 141)],
            &[],
        ),
    ),
    (
        "tunix/colocated/trace/perfetto_trace_1795219880.pb",
        log(
            "tunix-trace",
            readers::trace,
            series::ANY,
            0,
            &[("group_of_another_timeline", 16)],
            &["perf."],
        ),
    ),
    (
        "tunix/colocated/trace/perfetto_trace_v2_1795219880.pb",
        log("tunix-trace-v2", readers::trace, series::ANY, 0, &[], &["perf."]),
    ),
    (
        "tunix/rollout1_actor2/perf_metrics_export_v1.json",
        Holds::NoLog("what the metrics of the traces are compared with"),
    ),
    (
        "tunix/rollout1_actor2/stderr_absl.log",
        log(
            "tunix",
            readers::tunix,
            series::TUNIX,
            27,
            &[("private_content", 30)],
            &[],
        ),
    ),
    (
        "tunix/rollout1_actor2/tensorboard/events.out.tfevents.1795219969.vm",
        log(
            "tensorboard",
            readers::event_file,
            series::TAGS,
            534,
            &[("jax_time_of_day", 150)],
            &[],
        ),
    ),
    (
        "tunix/rollout1_actor2/trace/perfetto_trace_1795219968.pb",
        log(
            "tunix-trace",
            readers::trace,
            series::ANY,
            0,
            &[("group_of_another_timeline", 56)],
            &["perf."],
        ),
    ),
    (
        "tunix/rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
        log("tunix-trace-v2", readers::trace, series::ANY, 0, &[], &["perf."]),
    ),
    ("written/README.md", Holds::NoLog("a note")),
    (
        "written/any.jsonl",
        log("json", readers::any_json, series::ANY, 180, &[], &[]),
    ),
    (
        "written/any.log",
        log("keyvalue", readers::any_pairs, series::ANY, 180, &[], &[]),
    ),
    (
        "written/goodput/events.out.tfevents.1795222810.vm",
        log("tensorboard", readers::event_file, series::TAGS, 17, &[], &[]),
    ),
    (
        "written/maxtext.log",
        log("maxtext", readers::maxtext, series::MAXTEXT, 76, &[], &[]),
    ),
    (
        "written/megatron.log",
        log("megatron", readers::megatron, series::MEGATRON, 520, &[], &[]),
    ),
    (
        "written/surogate_metrics.jsonl",
        log(
            "surogate-jsonl",
            readers::surogate_jsonl,
            series::SUROGATE,
            276,
            &[],
            &[],
        ),
    ),
    (
        "written/torchtitan.log",
        log(
            "torchtitan",
            readers::torchtitan,
            series::TORCHTITAN,
            295,
            &[("not_measured", 1)],
            &[],
        ),
    ),
    (
        "written/tunix_otel.jsonl",
        log(
            "tunix-otel",
            readers::tunix_otlp,
            series::TAGS,
            59,
            &[("exported_again", 4), ("step_again", 24)],
            &[],
        ),
    ),
    (
        "written/tunix_otel.txt",
        log(
            "tunix-otel",
            readers::tunix_console,
            series::TAGS,
            59,
            &[("exported_again", 4), ("step_again", 24)],
            &[],
        ),
    ),
];
