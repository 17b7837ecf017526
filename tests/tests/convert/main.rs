//! `pulsetrain convert` and Perfetto: traces in both directions, unusual and large inputs, and stores of traces and metrics as
//! inputs.

mod backends;
mod chrome_json;
mod convert_answers;
mod convert_inputs;
mod convert_memory;
mod convert_mutated;
mod convert_open;
mod large;
mod metric_forms;
mod nsight;
mod perfetto_convert;
mod perfetto_exceptions;
mod perfetto_foreign;
mod perfetto_log_records;
mod perfetto_lossless;
mod perfetto_metrics;
mod perfetto_series;
mod perfetto_spans;
mod perfetto_sql;
mod perfetto_threads;
mod perfetto_times;
mod perfetto_traces;
mod perfetto_writer;
mod tunix_trace;
mod zipkin;
