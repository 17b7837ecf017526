"""Writes the files of this folder: an export as `nsys export --type sqlite` writes it, and OTLP of the same run.

Run in this folder: python write.py
"""

import json
import os
import sqlite3

START = 1_700_000_000_000_000_000
MACHINE = 0x0100 << 48
PID, MAIN, WORKER = 4242, 4242, 4250
MS = 1_000_000

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL,
    nameEnum INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, cacheConfig INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,
    blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL,
    gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind INTEGER, dstKind INTEGER,
    srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER,
    graphNodeId INTEGER, virtualAddress INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    syncType INTEGER NOT NULL, eventId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
    color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
    int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
    jsonText TEXT, binaryData TEXT);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER,
    nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE COMPOSITE_EVENTS (id INTEGER NOT NULL PRIMARY KEY, start INTEGER NOT NULL, cpu INTEGER, threadState INTEGER,
    globalTid INTEGER, cpuCycles INTEGER NOT NULL);
CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL, rank INTEGER NOT NULL);
CREATE TABLE GPU_METRICS (rawTimestamp INTEGER NOT NULL, timestamp INTEGER, typeId INTEGER NOT NULL,
    metricId INTEGER NOT NULL, value INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL,
    metricId INTEGER NOT NULL, metricName TEXT NOT NULL);
"""


def thread(tid):
    return MACHINE | PID << 24 | tid


class Export:
    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.database = sqlite3.connect(path)
        self.database.execute("PRAGMA page_size = 512")
        self.database.executescript(SCHEMA)
        self.texts = {}

    def text(self, value):
        number = self.texts.get(value)
        if number is None:
            number = self.texts[value] = len(self.texts) + 1
            self.insert("StringIds", id=number, value=value)
        return number

    def insert(self, table, **row):
        names, places = ", ".join(row), ", ".join("?" * len(row))
        self.database.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", list(row.values()))

    def call(self, start, end, name, correlation, tid=MAIN, result=0):
        self.insert("CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=0, globalTid=thread(tid),
                    correlationId=correlation, nameId=self.text(name), returnValue=result)

    def gpu(self, table, start, end, correlation, stream=7, **row):
        self.insert(f"CUPTI_ACTIVITY_KIND_{table}", start=start, end=end, deviceId=0, contextId=1, streamId=stream,
                    correlationId=correlation, globalPid=thread(0), **row)

    def kernel(self, start, end, correlation, name, stream=7, node=None):
        self.gpu("KERNEL", start, end, correlation, stream, demangledName=self.text(f"void {name}<float>(float*, int)"),
                 shortName=self.text(name), registersPerThread=32, gridX=128, gridY=2, gridZ=1, blockX=256, blockY=1, blockZ=1,
                 staticSharedMemory=0, dynamicSharedMemory=4096, localMemoryPerThread=0, localMemoryTotal=0, gridId=1,
                 graphNodeId=node)

    def nvtx(self, start, end, kind, name=None, registered=None, tid=MAIN, **row):
        self.insert("NVTX_EVENTS", start=start, end=end, eventType=kind, text=name, globalTid=thread(tid),
                    textId=registered and self.text(registered), **row)


export = Export("run.sqlite")
export.insert("TARGET_INFO_SESSION_START_TIME", utcEpochNs=START, utcTime="2023-11-14T22:13:20", localTime="2023-11-14T22:13:20")
export.insert("TARGET_INFO_SYSTEM_ENV", devStateName="host", name="Hostname", nameEnum=1, value="node-1")
export.insert("TARGET_INFO_SYSTEM_ENV", devStateName="host", name="API_TOKEN", nameEnum=2, value="a secret of the user")
export.insert("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value="3.16.1")
export.insert("PROCESSES", globalPid=thread(0), pid=PID, name="/usr/bin/python3.12")
export.insert("ThreadNames", nameId=export.text("python"), priority=1, globalTid=thread(MAIN))
export.insert("ThreadNames", nameId=export.text("pt_main_thread"), priority=2, globalTid=thread(MAIN))
export.insert("MPI_RANKS", globalTid=thread(MAIN), rank=3)
for number, label in enumerate(["Unknown", "Host-to-Device", "Device-to-Host"]):
    export.insert("ENUM_CUDA_MEMCPY_OPER", id=number, name="", label=label)
for number, label in enumerate(["Pageable", "Pinned", "Device"]):
    export.insert("ENUM_CUDA_MEM_KIND", id=number, name="", label=label)
export.insert("ENUM_CUPTI_SYNC_TYPE", id=3, name="", label="Stream sync")
export.nvtx(0, None, 75, "NCCL", domainId=5)
export.nvtx(0, None, 33, "phase", category=9, domainId=0)
export.nvtx(0, None, 39, "main")
for step in range(3):
    at = step * 10 * MS
    export.nvtx(at + MS, at + 9 * MS, 59, f"step {step}", domainId=0, int64Value=step)
    export.nvtx(at + 2 * MS, at + 4 * MS, 59, registered="forward", domainId=0, category=9)
    export.nvtx(at + 5 * MS, at + 7 * MS, 59, "ncclAllReduce", domainId=5)
    export.nvtx(at + 5 * MS + 500_000, None, 34, "grad norm clipped", domainId=0)
    export.call(at + 2 * MS, at + 2 * MS + 20_000, "cudaMemcpyAsync_v3020", 100 * step + 1)
    export.gpu("MEMCPY", at + 2 * MS + 30_000, at + 2 * MS + 90_000, 100 * step + 1, bytes=1 << 20, copyKind=1, srcKind=1, dstKind=2)
    export.call(at + 3 * MS, at + 3 * MS + 8_000, "cudaLaunchKernel_v7000", 100 * step + 2)
    export.kernel(at + 3 * MS + 50_000, at + 3 * MS + 950_000, 100 * step + 2, "gemm_kernel")
    export.call(at + 5 * MS, at + 5 * MS + 10_000, "cudaGraphLaunch_v10000", 100 * step + 3)
    # The kernels of a graph overlap on the stream that launches it.
    export.kernel(at + 5 * MS + 100_000, at + 6 * MS, 100 * step + 3, "reduce_a", node=1)
    export.kernel(at + 5 * MS + 200_000, at + 5 * MS + 800_000, 100 * step + 3, "reduce_b", node=2)
    export.call(at + 7 * MS, at + 8 * MS, "cudaStreamSynchronize_v3020", 100 * step + 4)
    export.gpu("SYNCHRONIZATION", at + 7 * MS, at + 8 * MS, 100 * step + 4, syncType=3, eventId=0)
# On the worker: a call that returns a code, work of a launch before the capture, a graph as one, and ranges that cross.
export.call(32 * MS, 32 * MS + 5_000, "cudaEventQuery_v3020", 900, WORKER, 600)
export.kernel(31 * MS, 31 * MS + 1_000, 899, "orphan", 13)
export.gpu("MEMSET", 33 * MS, 33 * MS + 2_000, 901, 13, value=0, bytes=4096)
export.gpu("GRAPH_TRACE", 34 * MS, 35 * MS, 902, 13, graphId=11, graphExecId=12)
export.nvtx(31 * MS, 34 * MS, 60, "request a", tid=WORKER, domainId=0, rangeId=1, endGlobalTid=thread(MAIN))
export.nvtx(32 * MS, 35 * MS, 60, "request b", tid=WORKER, domainId=0, rangeId=2, endGlobalTid=thread(WORKER))
export.nvtx(36 * MS, None, 59, "never popped", tid=WORKER, domainId=0)
export.nvtx(30 * MS + 1, None, 34, "outside", domainId=0)
export.insert("OSRT_API", start=37 * MS, end=38 * MS, eventClass=0, globalTid=thread(WORKER), nameId=export.text("poll"),
              returnValue=0, callchainId=0)
for sample in range(4):
    export.insert("COMPOSITE_EVENTS", id=sample, start=sample * MS, cpu=0, threadState=1, globalTid=thread(MAIN), cpuCycles=1)
    for number, value in [(1, 20 * sample), (2, 1500)]:
        export.insert("GPU_METRICS", rawTimestamp=sample, timestamp=sample * 10 * MS, typeId=0x1000100000000,
                      metricId=number, value=value)
for number, name in [(1, "SMs Active [Throughput %]"), (2, "GPC Clock Frequency [MHz]")]:
    export.insert("TARGET_INFO_GPU_METRICS", typeId=0x1000100000000, sourceId=1, typeName="GPU", metricId=number, metricName=name)
export.database.commit()
export.database.execute("VACUUM")
export.database.close()

spans = [
    {
        "traceId": "4f" * 16,
        "spanId": f"{step + 1:016x}",
        "name": "train.step",
        "startTimeUnixNano": str(START + step * 10 * MS + MS - 10_000),
        "endTimeUnixNano": str(START + step * 10 * MS + 9 * MS + 10_000),
        "attributes": [{"key": "train.step", "value": {"intValue": str(step)}}],
    }
    for step in range(3)
]
resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]}
with open("run.otlp.jsonl", "w") as file:
    file.write(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}) + "\n")
