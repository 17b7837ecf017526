//! Lists every file of the corpus, with the number of values of each log.

use crate::{
    readers::{self, Reader},
    series,
};

/// The log of a training system.
pub(super) struct Log {
    pub(super) name: &'static str,
    pub(super) format: &'static str,
    /// Reads the complete log with the test's own code.
    pub(super) reader: Reader,
    /// The table of the expected series.
    pub(super) table: &'static str,
    /// The number of values in it.
    pub(super) values: usize,
    /// The rules that leave values out, with their counts.
    pub(super) left_out: Vec<(&'static str, u64)>,
    /// The prefixes of metrics that are derived from several values.
    pub(super) derived: Vec<&'static str>,
}

/// The readers and the tables of the expected series. A format with two encodings has its second one after a `+`.
static READERS: &[(&str, Reader, &str)] = &[
    ("json", readers::any_json, series::ANY),
    ("keyvalue", readers::any_pairs, series::ANY),
    ("tensorboard", readers::event_file, series::TAGS),
    ("maxtext-goodput", readers::goodput_entries, series::GOODPUT),
    ("hf-trainer-state", readers::hf_state, series::HF_TRAINER),
    ("hf-trainer", readers::hf_trainer, series::HF_TRAINER),
    ("kempnerforge", readers::kempnerforge, series::KEMPNERFORGE),
    ("maxtext", readers::maxtext, series::MAXTEXT),
    ("maxtext-metrics", readers::maxtext_metrics, series::TAGS),
    ("megatron", readers::megatron, series::MEGATRON),
    ("surogate", readers::surogate, series::SUROGATE),
    (
        "surogate-console",
        readers::surogate_console,
        series::SUROGATE_CONSOLE,
    ),
    ("surogate-jsonl", readers::surogate_jsonl, series::SUROGATE),
    ("torchspec", readers::torchspec, series::TORCHSPEC),
    ("torchtitan", readers::torchtitan, series::TORCHTITAN),
    (
        "torchtitan-structured",
        readers::torchtitan_structured,
        series::TORCHTITAN,
    ),
    ("tunix", readers::tunix, series::TUNIX),
    ("tunix-otel+console", readers::tunix_console, series::TAGS),
    ("tunix-otel", readers::tunix_otlp, series::TAGS),
    ("tunix-trace", readers::trace, series::ANY),
    ("tunix-trace-v2", readers::trace, series::ANY),
    ("wandb", readers::wandb, series::TAGS),
];

/// A row a log, in the order of their names: the file, its format, the number of values, the rules that leave values out with their
/// counts, and the prefixes of derived metrics.
const LOGS: &str = "
hf-trainer/stdout.log hf-trainer 46
hf-trainer/tensorboard/events.out.tfevents.1795221025.vm.20360.0 tensorboard 47
hf-trainer/trainer_state.json hf-trainer-state 42 said_again=3 trainer_bookkeeping=4
kempnerforge/dense.stdout kempnerforge 111
kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0 tensorboard 188
maxtext/demo.metrics.jsonl maxtext-metrics 204
maxtext/demo.stderr maxtext 91 not_measured=1
maxtext/demo.stdout maxtext 3
maxtext/metrics_step_000000_to_step_000004.txt maxtext-metrics 85
maxtext/metrics_step_000005_to_step_000009.txt maxtext-metrics 85
maxtext/metrics_step_000010_to_step_000011.txt maxtext-metrics 34
maxtext/tensorboard/events.out.tfevents.1795221261.vm tensorboard 204
surogate/console_dense.log surogate-console 262 tokens_of_one_file=3
surogate/console_moe.log surogate-console 412 tokens_of_one_file=3
surogate/console_verbose.log surogate-console 304 tokens_of_one_file=3
surogate/training_dense.json surogate 338
surogate/training_moe.json surogate 668
torchspec/perf.stderr torchspec 582 bar_drawn_again=1 not_measured=1 wait_told_by_timing=11 perf.bottleneck
torchspec/perf.wandb wandb 1123 console_output=63 step_again=120 wandb_bookkeeping=20 wandb_clock=322 wandb_summary=1231 perf.bottleneck
torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0 tensorboard 1111 step_again=120 perf.bottleneck
torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl torchtitan-structured 6 start_told_by_end=6
tunix/colocated/stderr_absl.log tunix 27 private_content=30
tunix/colocated/tensorboard/events.out.tfevents.1795219881.vm tensorboard 494 jax_time_of_day=141
tunix/colocated/trace/perfetto_trace_1795219880.pb tunix-trace 0 group_of_another_timeline=16 perf.
tunix/colocated/trace/perfetto_trace_v2_1795219880.pb tunix-trace-v2 0 perf.
tunix/rollout1_actor2/stderr_absl.log tunix 27 private_content=30
tunix/rollout1_actor2/tensorboard/events.out.tfevents.1795219969.vm tensorboard 534 jax_time_of_day=150
tunix/rollout1_actor2/trace/perfetto_trace_1795219968.pb tunix-trace 0 group_of_another_timeline=56 perf.
tunix/rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb tunix-trace-v2 0 perf.
written/any.jsonl json 180
written/any.log keyvalue 180
written/goodput/events.out.tfevents.1795222810.vm tensorboard 17
written/goodput_entries.json maxtext-goodput 22
written/goodput_entries.jsonl maxtext-goodput 22
written/hf_trainer_trl.log hf-trainer 593
written/maxtext.log maxtext 106 share_of_used_and_limit=1
written/megatron.log megatron 520
written/surogate_metrics.jsonl surogate-jsonl 276
written/torchspec.log torchspec 110 eval_told_with_its_step=3 not_measured=3 passes_told_by_another_line=4 wait_not_over=1 wait_told_by_timing=3 perf.bottleneck perf.weight_sync_time
written/torchtitan.log torchtitan 339 not_measured=1
written/torchtitan_structured.jsonl torchtitan-structured 9 start_told_by_end=33
written/tunix_otel.jsonl tunix-otel 59 exported_again=4 step_again=24
written/tunix_otel.txt tunix-otel+console 59 exported_again=4 step_again=24
";

/// Returns every log, in the order of their names.
pub(super) fn all_logs() -> Vec<Log> {
    let rows = LOGS.lines().filter(|line| !line.is_empty());
    rows.map(log).collect()
}

fn log(row: &'static str) -> Log {
    let mut words = row.split_whitespace();
    let mut next = || words.next().expect("a row has a file, a format and a number");
    let (name, encoding, values) = (next(), next(), next());
    let known = READERS.iter().find(|(known, ..)| *known == encoding);
    let (_, reader, table) = *known.expect("the format has a reader");
    let (rules, derived): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
    let rule = |rule: &&'static str| {
        let (rule, count) = rule.split_once('=').expect("a rule has a count");
        (rule, count.parse().expect("a count is a number"))
    };
    Log {
        name,
        format: encoding.split_once('+').map_or(encoding, |(format, _)| format),
        reader,
        table,
        values: values.parse().expect("the values are counted"),
        left_out: rules.iter().map(rule).collect(),
        derived,
    }
}

/// The folder of logs that have no reader here.
pub(super) const UNKNOWN_TRAINERS: &str = "generic/";

/// Files of no training system: a file, or a folder with its `/`, the number of files, and their content.
pub(super) static NO_LOGS: &[(&str, usize, &str)] = &[
    ("backends/", 7, "an answer of a backend"),
    (
        UNKNOWN_TRAINERS,
        24,
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
    ("tempo/", 64, "answers of a Tempo, and how they were made"),
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
