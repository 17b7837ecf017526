#!/usr/bin/env node
// usage: query.mjs [--add-sql-package FOLDER] TRACE SQL...
// Loads a trace into Perfetto's trace_processor and prints one JSON array of rows a query, each on a line of its own. The modules
// of a package are its files, as with the option of trace_processor_shell.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { fileURLToPath, pathToFileURL } from 'node:url';

const home = path.dirname(fileURLToPath(import.meta.url));
const CHUNK = 8 << 20;

// The bundle is made for a web worker: it gets the few globals that it looks for.
Object.defineProperty(globalThis, 'self', { value: globalThis, writable: true, configurable: true });
globalThis.WorkerGlobalScope = function () {};
globalThis.location ??= { href: pathToFileURL(home).href + '/' };
console.warn = () => {};

const { EngineBase } = await import(pathToFileURL(path.join(home, 'engine.mjs')).href);
globalThis.wasmBinary = new Uint8Array(fs.readFileSync(path.join(home, 'trace_processor.wasm')));
vm.runInThisContext(patched(fs.readFileSync(path.join(home, 'engine_bundle.node.js'), 'utf8')));

const channel = new MessageChannel();
globalThis.wasmBridge.initialize(channel.port1);

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'judge';

  constructor(port) {
    super();
    this.port = port;
    port.onmessage = ({ data }) => data instanceof Uint8Array && this.onRpcResponseBytes(data);
  }

  rpcSendRequestBytes(bytes) {
    this.port.postMessage(bytes);
  }

  [Symbol.dispose]() {}
}

const engine = new Engine(channel.port2);
await started();
const args = process.argv.slice(2);
const folder = args[0] === '--add-sql-package' ? args.splice(0, 2)[1] : undefined;
const [trace, ...queries] = args;
await load(trace);
if (folder) await engine.registerSqlPackages(sqlPackage(folder));
for (const query of queries) {
  await print(await rows(query));
}
process.exit(0);

// Three places of the bundle are told where to find the program and how to reach it; each must be there.
function patched(source) {
  const patches = [
    ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
    ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.wasmBinary,'],
    ['const wasmBridge = new wasm_bridge_1.WasmBridge();', 'const wasmBridge = globalThis.wasmBridge = new wasm_bridge_1.WasmBridge();'],
  ];
  for (const [from, to] of patches) {
    if (!source.includes(from)) throw new Error(`the bundle has no ${from}`);
    source = source.replace(from, to);
  }
  return source;
}

function started() {
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (!globalThis.wasmBridge.reqBufferAddr) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
}

async function load(file) {
  const handle = fs.openSync(file, 'r');
  const buffer = Buffer.alloc(CHUNK);
  for (let read; (read = fs.readSync(handle, buffer, 0, CHUNK, null)) > 0; ) {
    await engine.parse(new Uint8Array(buffer.subarray(0, read)));
  }
  await engine.notifyEof();
}

function sqlPackage(folder) {
  const name = path.basename(folder);
  const files = fs.readdirSync(folder).filter((file) => file.endsWith('.sql'));
  const modules = files.map((file) => ({
    name: `${name}.${path.basename(file, '.sql')}`,
    sql: fs.readFileSync(path.join(folder, file), 'utf8'),
  }));
  return { name, modules };
}

async function rows(query) {
  const result = await engine.query(query);
  const columns = result.columns();
  const found = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    found.push(Object.fromEntries(columns.map((column) => [column, plain(row.get(column))])));
  }
  return found;
}

// Integers that JSON's readers would round are strings.
function plain(value) {
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

function print(found) {
  return new Promise((resolve) => process.stdout.write(JSON.stringify(found) + '\n', resolve));
}
