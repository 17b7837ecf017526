//! The tables whose rows are converted to spans, as NVIDIA documents them ("SQLite Schema Reference" in the user guide of
//! Nsight Systems).
//!
//! Scopes and attributes have the same names as in Kineto, so that one query covers the traces of both.

/// The table of NVTX ranges and marks, which `nvtx` reads.
pub(super) const NVTX_TABLE: &str = "NVTX_EVENTS";
/// The table of sampled GPU metrics, which `samples` reads.
pub(super) const SAMPLES_TABLE: &str = "GPU_METRICS";

/// A table of spans.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The scope of its spans.
    pub(super) scope: &'static str,
    pub(super) place: TrackKind,
    pub(super) title: SpanName,
    pub(super) attributes: &'static [AttributeColumn],
}

/// The row that spans are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackKind {
    /// The thread in `globalTid`.
    Thread,
    /// The thread in `globalTid`; spans have ids by `correlationId`, so that the work that they launch can link to them.
    Launch,
    /// The CUDA stream in `deviceId` and `streamId`.
    Stream,
    /// A row for each device, since a waiting host overlaps the work that it waits for.
    Synchronization,
}

/// The name of a span.
#[derive(Clone, Copy, Debug)]
pub(super) enum SpanName {
    /// The first text that is not empty, else the name.
    Texts(&'static [&'static str], &'static str),
    /// A prefix and the label of a number.
    Label(&'static str, &'static str, &'static str),
    /// A prefix and a number.
    Number(&'static str, &'static str),
}

/// An attribute of a span, and the columns of its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum AttributeColumn {
    Int(&'static str, &'static str),
    /// An integer that is omitted if it is 0.
    NotZero(&'static str, &'static str),
    /// A text that is omitted if it is the name of the span.
    Text(&'static str, &'static str),
    /// The label of a number in an enum table.
    Label(&'static str, &'static str, &'static str),
    /// A list of three numbers.
    Three(&'static str, [&'static str; 3]),
}

use AttributeColumn::{Int, Label, NotZero, Text, Three};

const COPY_KIND: &str = "ENUM_CUDA_MEMCPY_OPER";
const MEMORY_KIND: &str = "ENUM_CUDA_MEM_KIND";
const SYNC_TYPE: &str = "ENUM_CUPTI_SYNC_TYPE";

const MPI: SpanName = SpanName::Texts(&["textId"], "MPI");

/// Every table of spans except that of NVTX. Among rows with equal times, those of earlier tables contain the others.
pub(super) const TABLES: [Table; 14] = [
    Table {
        name: "MPI_COLLECTIVES_EVENTS",
        scope: "mpi",
        place: TrackKind::Thread,
        title: MPI,
        attributes: &[
            Int("size", "size"),
            Int("received size", "recvSize"),
            Int("root rank", "rootRank"),
        ],
    },
    Table {
        name: "MPI_P2P_EVENTS",
        scope: "mpi",
        place: TrackKind::Thread,
        title: MPI,
        attributes: &[
            Int("size", "size"),
            Int("remote rank", "remoteRank"),
            Int("tag", "tag"),
        ],
    },
    Table {
        name: "MPI_START_WAIT_EVENTS",
        scope: "mpi",
        place: TrackKind::Thread,
        title: MPI,
        attributes: &[],
    },
    Table {
        name: "MPI_OTHER_EVENTS",
        scope: "mpi",
        place: TrackKind::Thread,
        title: MPI,
        attributes: &[],
    },
    Table {
        name: "CUBLAS_EVENTS",
        scope: "cublas",
        place: TrackKind::Thread,
        title: SpanName::Texts(&["nameId"], "cuBLAS"),
        attributes: &[],
    },
    Table {
        name: "CUDNN_EVENTS",
        scope: "cudnn",
        place: TrackKind::Thread,
        title: SpanName::Texts(&["nameId"], "cuDNN"),
        attributes: &[],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_RUNTIME",
        scope: "cuda_runtime",
        place: TrackKind::Launch,
        title: SpanName::Texts(&["nameId"], "CUDA call"),
        attributes: &[
            Int("correlation", "correlationId"),
            NotZero("return value", "returnValue"),
        ],
    },
    // Older exports have a separate table for the calls of the driver.
    Table {
        name: "CUPTI_ACTIVITY_KIND_DRIVER",
        scope: "cuda_driver",
        place: TrackKind::Launch,
        title: SpanName::Texts(&["nameId"], "CUDA driver call"),
        attributes: &[
            Int("correlation", "correlationId"),
            NotZero("return value", "returnValue"),
        ],
    },
    Table {
        name: "OSRT_API",
        scope: "osrt",
        place: TrackKind::Thread,
        title: SpanName::Texts(&["nameId"], "system call"),
        attributes: &[],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        scope: "cuda_graph",
        place: TrackKind::Stream,
        title: SpanName::Number("CUDA graph", "graphId"),
        attributes: &[
            Int("device", "deviceId"),
            Int("context", "contextId"),
            Int("stream", "streamId"),
            Int("correlation", "correlationId"),
            Int("graph", "graphId"),
            Int("executable graph", "graphExecId"),
        ],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        scope: "kernel",
        place: TrackKind::Stream,
        title: SpanName::Texts(&["shortName", "demangledName"], "kernel"),
        attributes: &[
            Text("demangled name", "demangledName"),
            Int("device", "deviceId"),
            Int("context", "contextId"),
            Int("stream", "streamId"),
            Int("correlation", "correlationId"),
            Int("registers per thread", "registersPerThread"),
            Int("static shared memory", "staticSharedMemory"),
            Int("dynamic shared memory", "dynamicSharedMemory"),
            NotZero("graph node id", "graphNodeId"),
            Three("grid", ["gridX", "gridY", "gridZ"]),
            Three("block", ["blockX", "blockY", "blockZ"]),
        ],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        scope: "gpu_memcpy",
        place: TrackKind::Stream,
        title: SpanName::Label("Memcpy", "copyKind", COPY_KIND),
        attributes: &[
            Int("bytes", "bytes"),
            Label("kind", "copyKind", COPY_KIND),
            Label("source", "srcKind", MEMORY_KIND),
            Label("destination", "dstKind", MEMORY_KIND),
            Int("device", "deviceId"),
            Int("context", "contextId"),
            Int("stream", "streamId"),
            Int("correlation", "correlationId"),
            NotZero("graph node id", "graphNodeId"),
        ],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        scope: "gpu_memset",
        place: TrackKind::Stream,
        title: SpanName::Texts(&[], "Memset"),
        attributes: &[
            Int("bytes", "bytes"),
            Int("value", "value"),
            Int("device", "deviceId"),
            Int("context", "contextId"),
            Int("stream", "streamId"),
            Int("correlation", "correlationId"),
            NotZero("graph node id", "graphNodeId"),
        ],
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        scope: "cuda_sync",
        place: TrackKind::Synchronization,
        title: SpanName::Label("", "syncType", SYNC_TYPE),
        attributes: &[
            Int("device", "deviceId"),
            Int("context", "contextId"),
            Int("stream", "streamId"),
            Int("correlation", "correlationId"),
        ],
    },
];
