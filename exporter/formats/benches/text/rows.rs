//! The rows of the table: a format, its input, and the naive reader of it.

use crate::{
    input::{LATER_SECS, Repeated},
    naive::{Naive, json::Objects, lines::Grammar},
};

/// A row of the table.
pub(crate) struct Row {
    /// The name of the format.
    pub(crate) format: &'static str,
    pub(crate) input: Input,
    pub(crate) naive: Naive,
}

/// The source of an input.
pub(crate) enum Input {
    /// Lines of a file of the corpus.
    Text(Repeated),
    /// The records of wandb's file in the corpus.
    Wandb,
}

impl Input {
    /// An input of about `size` bytes.
    pub(crate) fn make(&self, size: usize) -> Vec<u8> {
        match self {
            Self::Text(repeated) => repeated.input(size),
            Self::Wandb => crate::naive::wandb::input(size),
        }
    }
}

const fn text(file: &'static str, from: &'static str) -> Input {
    Input::Text(Repeated {
        file,
        from,
        until: "",
        separator: "\n",
        later_secs: LATER_SECS,
    })
}

const fn objects(time: Option<(&'static str, f64)>) -> Naive {
    Naive::Json(Objects {
        time,
        within: None,
        only: &[],
    })
}

/// Every format of the table.
pub(crate) static ROWS: &[Row] = &[
    Row {
        format: "surogate",
        input: Input::Text(Repeated {
            file: "surogate/training_dense.json",
            from: "\"step\": 15,",
            until: "\n]",
            separator: "\n",
            // An unchanged state is repeated only after an interval.
            later_secs: 1,
        }),
        naive: objects(None),
    },
    Row {
        format: "surogate-console",
        input: text("surogate/console_dense.log", ":: step"),
        naive: Naive::Lines(Grammar {
            lines: &[
                r"^:: step +(?<step>\d+) \[(?<fields>.*)$",
                r">> eval +(?<fields>.*)$",
            ],
            pairs: &[
                r"(?<key>loss|norm|sol|gap|best) +!?(?<value>-?[\d.]+)",
                r"(?<value>[\d.]+)k? ?(?<key>tps|ms|%)",
                r"(?<key>eta) (?<value>\d+)h",
            ],
            before: None,
        }),
    },
    Row {
        format: "surogate-jsonl",
        input: text("written/surogate_metrics.jsonl", "train/loss"),
        naive: objects(Some(("ts", 1e9))),
    },
    Row {
        format: "kempnerforge",
        input: text("kempnerforge/dense.stdout", "[step "),
        naive: Naive::Lines(Grammar {
            lines: &[r"^\[rank \d+\] INFO +\[step (?<step>\d+)\] (?<fields>.*)$"],
            pairs: &[r"(?<key>[\w/]+)=(?<value>[\d.,e+-]+)(?:/(?<total>\d+)GB)?"],
            before: None,
        }),
    },
    Row {
        format: "maxtext",
        input: text("maxtext/demo.stderr", "completed step: "),
        naive: Naive::Lines(Grammar {
            lines: &[
                r"^I(?<absl>\d{4} [\d:.]+) \d+ [\w.]+:\d+\] completed step: (?<step>\d+), (?<fields>.*)$",
                r"^I(?<absl>\d{4} [\d:.]+) \d+ [\w.]+:\d+\] Completed eval[\w ]*: ?(?<step>\d+), (?<fields>.*)$",
            ],
            pairs: &[r"(?<key>[\w/ ]+): (?<value>-?[\d.e+-]+)"],
            before: None,
        }),
    },
    Row {
        format: "maxtext-metrics",
        input: text("maxtext/demo.metrics.jsonl", "learning/"),
        naive: objects(None),
    },
    Row {
        format: "torchspec",
        input: Input::Text(Repeated {
            file: "torchspec/perf.stderr",
            from: "Training:",
            until: "wandb: \nwandb: Run history",
            separator: "\n",
            later_secs: LATER_SECS,
        }),
        naive: Naive::Lines(Grammar {
            lines: &[
                r"\| (?<fields>(?<step>\d+)/\d+ \[[^\]]*)\]",
                r"\[(?<time>2026[^\]]+)\] .* TIMING step=(?<step>\d+): (?<fields>.*)$",
            ],
            pairs: &[
                r"(?<key>\w+)=(?<value>[\d.]+)",
                r"(?<value>[\d.]+)(?<key>step/s)",
                r"(?<value>\d\d:\d\d)(?<key>[<,])",
                r"^(?<value>\d+)(?<key>/)",
            ],
            before: None,
        }),
    },
    Row {
        format: "tunix",
        input: text("tunix/colocated/stderr_absl.log", "Train step"),
        naive: Naive::Lines(Grammar {
            lines: &[
                r"^I(?<absl>\d{4} [\d:.]+) \d+ peft_trainer.py:\d+\] Train step (?<step>\d+) (?<fields>.*)$",
                r"^I(?<absl>\d{4} [\d:.]+) \d+ peft_trainer.py:\d+\] (?<fields>Compiled.*)$",
            ],
            pairs: &[r"(?<key>[\w ]+): (?<value>-?[\d.e+-]+)"],
            before: None,
        }),
    },
    Row {
        format: "hf-trainer",
        input: text("hf-trainer/stdout.log", "{'loss'"),
        naive: Naive::Lines(Grammar {
            lines: &[r"^\{(?<fields>'.*)\}$"],
            pairs: &[r"'(?<key>\w+)': '?(?<value>-?[\d.e+-]+)'?"],
            before: None,
        }),
    },
    Row {
        format: "hf-trainer-state",
        input: Input::Text(Repeated {
            file: "hf-trainer/trainer_state.json",
            from: "    {",
            until: "  ],",
            separator: ",\n",
            later_secs: LATER_SECS,
        }),
        naive: Naive::Json(Objects {
            time: None,
            within: Some("log_history"),
            only: &[],
        }),
    },
    Row {
        format: "torchtitan",
        input: text("written/torchtitan.log", "step:  2"),
        naive: Naive::Lines(Grammar {
            lines: &[
                r"^\[titan\] (?<time>\S+ \S+) - root - INFO - .*step: *(?<step>\d+) +(?<fields>loss.*)$",
            ],
            pairs: &[r"(?<key>\w+): +(?<value>[\d.,]+)(?:GiB\((?<total>[\d.]+)%\))?"],
            before: Some(r"\x1b\[[\d;]*m"),
        }),
    },
    Row {
        format: "torchtitan-structured",
        input: text(
            "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl",
            "fwd_bwd_start",
        ),
        naive: Naive::Json(Objects {
            time: Some(("time_us", 1e3)),
            within: None,
            only: &["value"],
        }),
    },
    Row {
        format: "json",
        input: text("written/any.jsonl", "{\"ts\""),
        naive: objects(Some(("ts", 1e6))),
    },
    Row {
        format: "keyvalue",
        input: text("written/any.log", "step=0"),
        naive: Naive::Lines(Grammar {
            lines: &[r"^(?<time>\S+ \S+) INFO step=(?<step>\d+) (?<fields>.*)$"],
            pairs: &[r"(?<key>[\w./]+)=(?<value>[\d.,]+)"],
            before: None,
        }),
    },
    Row {
        format: "wandb",
        input: Input::Wandb,
        naive: Naive::Wandb,
    },
];
