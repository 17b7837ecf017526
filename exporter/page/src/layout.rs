//! The layout of the page: the only table of the page that names metrics, spans and events.
//!
//! The browser receives the table with the page's data. Title, unit and description of each metric come from
//! its definition. Metrics outside the table are in the list of all metrics.

use pulsetrain_semconv::{Attribute, Event, Metric, Span, attribute, event, metric, span};

use super::json::JsonWriter;

/// A number at the top of a run: the first of its metrics that has a value.
struct Tile {
    /// The id by which the page finds a value that it computes itself, such as the time since the last step.
    id: &'static str,
    title: &'static str,
    metrics: &'static [&'static Metric],
}

/// A group of charts. It is hidden if none of its metrics has points.
struct Section {
    id: &'static str,
    title: &'static str,
    panels: &'static [Panel],
}

/// A chart of one metric, or of several with the same unit.
struct Panel {
    title: &'static str,
    metrics: &'static [&'static Metric],
    /// Whether only the first metric with points is shown, because the others are alternatives.
    is_one: bool,
}

/// A column of a table.
struct Column {
    title: &'static str,
    metric: &'static Metric,
    /// The attribute value of the preferred series.
    prefer: &'static str,
    /// The metric with the maximum of the value.
    limit: Option<&'static Metric>,
}

/// A phase of a step: its span, and the metrics of trainers without spans.
struct Phase {
    title: &'static str,
    span: &'static Span,
    metrics: &'static [&'static Metric],
}

static TILES: &[Tile] = &[
    tile("step", "Step", &[&metric::TRAIN_GLOBAL_STEP]),
    tile("progress", "Progress", &[&metric::TRAIN_PROGRESS]),
    tile("eta", "Time left", &[&metric::TRAIN_ETA]),
    tile("loss", "Loss", LOSSES),
    tile("tokens", "Throughput", THROUGHPUTS),
    tile("step_time", "Step time", STEP_TIMES),
    tile(
        "mfu",
        "MFU",
        &[
            &metric::TRAIN_MFU,
            &metric::TRAIN_SMOOTHED_MFU,
            &metric::TRAIN_SOL,
        ],
    ),
    tile("goodput", "Goodput", &[&metric::TRAIN_GOODPUT]),
    tile("data_wait", "Data wait", &[&metric::PERF_DATA_WAIT_RATIO]),
    tile("since_step", "Since last step", &[]),
    tile("sample_age", "Sample age", &[]),
];

static LOSSES: &[&Metric] = &[
    &metric::TRAIN_LOSS,
    &metric::TRAIN_MEAN_LOSS,
    &metric::RL_POLICY_LOSS,
];

static THROUGHPUTS: &[&Metric] = &[
    &metric::TRAIN_THROUGHPUT_TOKENS,
    &metric::TRAIN_SMOOTHED_THROUGHPUT,
    &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
    &metric::TRAIN_THROUGHPUT_SAMPLES,
    &metric::PERF_THROUGHPUT,
    &metric::TRAIN_THROUGHPUT_STEPS,
];

static STEP_TIMES: &[&Metric] = &[
    &metric::TRAIN_STEP_DURATION,
    &metric::PERF_GLOBAL_STEP_TIME,
    &metric::PERF_STEP_TIME,
];

static SECTIONS: &[Section] = &[
    Section {
        id: "training",
        title: "Training",
        panels: &[
            panel(
                "Loss",
                &[
                    &metric::TRAIN_LOSS,
                    &metric::TRAIN_SMOOTHED_LOSS,
                    &metric::TRAIN_MEAN_LOSS,
                    &metric::EVAL_LOSS,
                ],
            ),
            panel(
                "Gradient norm",
                &[&metric::TRAIN_GRAD_NORM, &metric::TRAIN_RAW_GRAD_NORM],
            ),
            panel("Learning rate", &[&metric::TRAIN_LEARNING_RATE]),
            one_of("Step time", STEP_TIMES),
            one_of("Throughput", THROUGHPUTS),
            panel(
                "Throughput of one device",
                &[&metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE],
            ),
            panel(
                "Utilization of peak FLOP/s",
                &[
                    &metric::TRAIN_MFU,
                    &metric::TRAIN_SMOOTHED_MFU,
                    &metric::TRAIN_SOL,
                ],
            ),
            panel("Components of the loss", &[&metric::TRAIN_LOSS_COMPONENT]),
            panel("Accuracy", &[&metric::TRAIN_ACCURACY, &metric::EVAL_ACCURACY]),
            panel(
                "Perplexity",
                &[&metric::TRAIN_PERPLEXITY, &metric::EVAL_PERPLEXITY],
            ),
            panel("Step time over the ranks", &[&metric::TRAIN_RANK_STEP_TIME]),
            panel("Data wait", &[&metric::PERF_DATA_WAIT_RATIO]),
        ],
    },
    Section {
        id: "rl",
        title: "Reinforcement learning",
        panels: &[
            panel("Reward", &[&metric::RL_TRAJECTORY_REWARD]),
            panel("Components of the reward", &[&metric::RL_REWARD_COMPONENT]),
            panel("KL", &[&metric::RL_KL, &metric::RL_POLICY_KL]),
            panel("Entropy", &[&metric::RL_ENTROPY]),
            panel("Policy loss", &[&metric::RL_POLICY_LOSS, &metric::RL_VALUE_LOSS]),
            panel("Completion length", &[&metric::RL_COMPLETION_LENGTH]),
            panel(
                "Clipped",
                &[
                    &metric::RL_POLICY_CLIP_FRACTION,
                    &metric::RL_VALUE_CLIP_FRACTION,
                    &metric::RL_COMPLETION_CLIP_RATIO,
                ],
            ),
            panel("Staleness", &[&metric::RL_STALENESS]),
            panel(
                "Capacity",
                &[
                    &metric::PERF_TRAIN_CAPACITY,
                    &metric::PERF_INFER_CAPACITY,
                    &metric::PERF_THROUGHPUT,
                ],
            ),
            panel(
                "Sample pool",
                &[&metric::PERF_SAMPLE_POOL_SIZE, &metric::PERF_SAMPLE_POOL_LIMIT],
            ),
            panel(
                "Rollout and weights",
                &[
                    &metric::PERF_ROLLOUT_TIME,
                    &metric::PERF_WEIGHT_SYNC_TIME,
                    &metric::PERF_DISPATCH_WAIT,
                ],
            ),
        ],
    },
    Section {
        id: "moe",
        title: "Mixture of experts",
        panels: &[
            panel("Auxiliary losses", &[&metric::MOE_AUX_LOSS, &metric::MOE_Z_LOSS]),
            panel(
                "Load imbalance",
                &[&metric::MOE_LOAD_IMBALANCE, &metric::MOE_LOAD_CV],
            ),
            panel(
                "Expert utilization",
                &[&metric::MOE_EXPERT_UTILIZATION, &metric::MOE_EXPERT_BALANCE],
            ),
            panel(
                "Share of the busiest expert",
                &[
                    &metric::MOE_MAX_EXPERT_FRACTION,
                    &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
                ],
            ),
            panel(
                "Router",
                &[&metric::MOE_ROUTER_ENTROPY, &metric::MOE_ROUTER_CONFIDENCE],
            ),
            panel("Active experts", &[&metric::MOE_ACTIVE_EXPERTS]),
        ],
    },
    Section {
        id: "memory",
        title: "Memory and energy",
        panels: &[
            panel(
                "Framework allocator",
                &[
                    &metric::MEMORY_FRAMEWORK_ALLOCATED,
                    &metric::MEMORY_FRAMEWORK_RESERVED,
                    &metric::MEMORY_FRAMEWORK_PEAK,
                ],
            ),
            panel("Host memory", &[&metric::MEMORY_HOST_USED]),
            panel("Energy of a step", &[&metric::GPU_STEP_ENERGY]),
            panel("Energy of a token", &[&metric::PERF_ENERGY_PER_TOKEN]),
        ],
    },
];

/// The metrics of each rank that have a history.
static RANKS: &[Column] = &[
    column("Straggler score", &metric::TRAIN_STRAGGLER_SCORE, ""),
    column("Step time", &metric::TRAIN_STEP_DURATION, ""),
    column("Memory", &metric::MEMORY_FRAMEWORK_ALLOCATED, ""),
    column("Host memory", &metric::MEMORY_HOST_USED, ""),
    column("Energy", &metric::GPU_STEP_ENERGY, ""),
];

static GPUS: &[Column] = &[
    column("Utilization", &metric::GPU_UTILIZATION, "general"),
    Column {
        title: "Power",
        metric: &metric::GPU_POWER,
        prefer: "",
        limit: Some(&metric::GPU_POWER_LIMIT),
    },
    column("Temperature", &metric::GPU_TEMPERATURE, "gpu"),
    column("Clock", &metric::GPU_CLOCK_FREQUENCY, "sm"),
    Column {
        title: "Memory",
        metric: &metric::GPU_MEMORY_USED,
        prefer: "",
        limit: Some(&metric::GPU_MEMORY_LIMIT),
    },
    column("Throttled", &metric::GPU_THROTTLE_ACTIVE, ""),
    column("XID errors", &metric::GPU_XID_ERRORS, ""),
    column("Fault", &metric::GPU_FAULT_ACTIVE, ""),
];

static PHASES: &[Phase] = &[
    phase("data", &span::PERF_DATA, &[&metric::PERF_DATA_TIME]),
    phase(
        "dispatch wait",
        &span::PERF_DISPATCH_WAIT,
        &[&metric::PERF_DISPATCH_WAIT],
    ),
    phase("rollout", &span::RL_ROLLOUT, &[&metric::PERF_ROLLOUT_TIME]),
    phase("environment", &span::RL_ENVIRONMENT, &[]),
    phase(
        "reference",
        &span::RL_REFERENCE_INFERENCE,
        &[&metric::PERF_REFER_INFERENCE_TIME],
    ),
    phase(
        "old actor",
        &span::RL_OLD_ACTOR_INFERENCE,
        &[&metric::PERF_OLD_ACTOR_INFERENCE_TIME],
    ),
    phase("advantage", &span::RL_ADVANTAGE, &[]),
    phase("forward", &span::PERF_FORWARD, &[&metric::PERF_FORWARD_TIME]),
    phase("backward", &span::PERF_BACKWARD, &[&metric::PERF_BACKWARD_TIME]),
    phase("forward and backward", &span::PERF_FORWARD_BACKWARD, &[]),
    phase(
        "optimizer",
        &span::PERF_OPTIMIZER,
        &[&metric::PERF_OPTIMIZER_TIME],
    ),
    phase(
        "actor training",
        &span::RL_ACTOR_TRAIN,
        &[&metric::PERF_ACTOR_TRAIN_TIME],
    ),
    phase("critic training", &span::RL_CRITIC_TRAIN, &[]),
    phase(
        "weight sync",
        &span::RL_WEIGHT_SYNC,
        &[&metric::PERF_WEIGHT_SYNC_TIME],
    ),
];

/// The span of a step.
pub(super) static STEP: &Span = &span::TRAIN_STEP;

/// The number of a step.
pub(super) static STEP_NUMBER: &Metric = &metric::TRAIN_GLOBAL_STEP;

/// The duration of a step, if no span reports it.
pub(super) static STEP_DURATION: &Metric = &metric::TRAIN_STEP_DURATION;

/// The planned number of steps.
pub(super) static PLANNED_STEPS: &Metric = &metric::TRAIN_PLANNED_STEPS;

/// Spans outside steps that are marked on the curves.
static MARKS: &[&Span] = &[
    &span::TRAIN_CHECKPOINT_SAVE,
    &span::TRAIN_CHECKPOINT_LOAD,
    &span::EVAL_RUN,
    &span::RUN_INIT,
    &span::RUN_COMPILE,
];

/// The event of a verdict.
pub(super) static VERDICT: &Event = &event::TRAIN_VERDICT;

/// Events that are listed at any severity.
static EVENTS: &[&Event] = &[&event::GPU_XID, &event::RUN_COMMAND];

/// Events that are never stored, because their bodies are the contents of conversations.
static PRIVATE: &[&Event] = &[&event::RL_PROMPT, &event::RL_COMPLETION, &event::RL_TRAJECTORY];

/// Attributes of GPU points that name the owner of the GPU. They do not identify a series.
static OWNERS: &[&Attribute] = &[
    &attribute::GPU_ID,
    &attribute::GPU_INDEX,
    &attribute::TRAIN_RUN_ID,
    &attribute::TRAIN_RANK,
];

const fn tile(id: &'static str, title: &'static str, metrics: &'static [&'static Metric]) -> Tile {
    Tile { id, title, metrics }
}

const fn panel(title: &'static str, metrics: &'static [&'static Metric]) -> Panel {
    Panel {
        title,
        metrics,
        is_one: false,
    }
}

const fn one_of(title: &'static str, metrics: &'static [&'static Metric]) -> Panel {
    Panel {
        title,
        metrics,
        is_one: true,
    }
}

const fn column(title: &'static str, metric: &'static Metric, prefer: &'static str) -> Column {
    Column {
        title,
        metric,
        prefer,
        limit: None,
    }
}

const fn phase(title: &'static str, span: &'static Span, metrics: &'static [&'static Metric]) -> Phase {
    Phase { title, span, metrics }
}

/// Returns the title and the metrics of each tile.
pub(super) fn tile_metrics() -> impl Iterator<Item = (&'static str, &'static [&'static Metric])> {
    TILES.iter().map(|tile| (tile.title, tile.metrics))
}

/// Returns whether each rank has a history of the metric.
pub(super) fn is_rank_column(name: &str) -> bool {
    RANKS.iter().any(|column| column.metric.name == name)
}

/// Returns whether the GPU table shows the metric, which then has a history.
pub(super) fn is_gpu_column(name: &str) -> bool {
    let is_shown =
        |column: &Column| column.metric.name == name || column.limit.is_some_and(|limit| limit.name == name);
    GPUS.iter().any(is_shown)
}

/// Returns the span name of the step phase whose duration the metric reports.
pub(super) fn phase_of_metric(name: &str) -> Option<&'static str> {
    let reports = |phase: &&Phase| phase.metrics.iter().any(|metric| metric.name == name);
    PHASES.iter().find(reports).map(|phase| phase.span.name)
}

/// Returns the mark of a span, if its kind is marked on the curves.
pub(super) fn mark(name: &str) -> Option<&'static str> {
    MARKS.iter().find(|span| span.name == name).map(|span| span.name)
}

/// Returns whether the event is listed at any severity.
pub(super) fn is_listed(name: &str) -> bool {
    EVENTS.iter().any(|event| event.name == name)
}

/// Returns whether the event must not be stored.
pub(super) fn is_private(name: &str) -> bool {
    PRIVATE.iter().any(|event| event.name == name)
}

/// Returns whether the attribute names the owner of a GPU.
pub(super) fn is_owner(key: &str) -> bool {
    OWNERS.iter().any(|attribute| attribute.name == key)
}

/// Returns whether the metric is the headline of a run in the list of runs.
pub(super) fn is_headline(name: &str) -> bool {
    LOSSES.iter().any(|metric| metric.name == name)
}

/// Returns whether a resource without a run id is a run because it reports this metric.
pub(super) fn is_of_a_run(name: &str) -> bool {
    name == STEP_NUMBER.name || is_headline(name)
}

/// Writes the table for the browser.
pub(super) fn write(json: &mut JsonWriter) {
    json.object(|json| {
        json.key("tiles")
            .list(|json| TILES.iter().for_each(|tile| tile.write(json)));
        json.key("sections")
            .list(|json| SECTIONS.iter().for_each(|section| section.write(json)));
        json.key("ranks")
            .list(|json| RANKS.iter().for_each(|column| column.write(json)));
        json.key("gpus")
            .list(|json| GPUS.iter().for_each(|column| column.write(json)));
        json.key("phases")
            .list(|json| PHASES.iter().for_each(|phase| phase.write(json)));
        json.key("wall_time").text(metric::TRAIN_WALL_TIME.name);
        json.key("straggler").text(metric::TRAIN_STRAGGLER_SCORE.name);
    });
}

fn names(json: &mut JsonWriter, metrics: &[&Metric]) {
    json.list(|json| metrics.iter().for_each(|metric| json.text(metric.name)));
}

impl Tile {
    fn write(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("id").text(self.id);
            json.key("title").text(self.title);
            names(json.key("metrics"), self.metrics);
        });
    }
}

impl Section {
    fn write(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("id").text(self.id);
            json.key("title").text(self.title);
            json.key("panels").list(|json| {
                for panel in self.panels {
                    json.object(|json| {
                        json.key("title").text(panel.title);
                        names(json.key("metrics"), panel.metrics);
                        json.key("one").boolean(panel.is_one);
                    });
                }
            });
        });
    }
}

impl Column {
    fn write(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("title").text(self.title);
            json.key("metric").text(self.metric.name);
            json.key("unit").text(self.metric.unit);
            json.key("brief").text(self.metric.brief);
            json.key("prefer").text(self.prefer);
            if let Some(limit) = self.limit {
                json.key("limit").text(limit.name);
            }
        });
    }
}

impl Phase {
    fn write(&self, json: &mut JsonWriter) {
        json.object(|json| {
            json.key("title").text(self.title);
            json.key("span").text(self.span.name);
            json.key("brief").text(self.span.brief);
        });
    }
}
