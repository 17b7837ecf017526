#!/usr/bin/env node
// usage: check.mjs FILE...
// Checks the JSON of Grafana dashboards against the types of @grafana/schema (dashboard.ts), one error a line:
//   FILE:LINE:COLUMN: MESSAGE
// Exit status 1 if there is an error: a key that Grafana does not know, a value of another type, a missing key.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const home = path.dirname(fileURLToPath(import.meta.url));
const head = "import type { DashboardJson } from './dashboard'; export const dashboard: DashboardJson = ";

// JSON is an expression of TypeScript, and an object literal may have no key that its type lacks. It stays on its lines.
const modules = new Map(process.argv.slice(2).map((file, index) => [path.join(home, `${index}.ts`), file]));
const options = { strict: true, noEmit: true, skipLibCheck: true, types: [], module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022 };
const host = ts.createCompilerHost(options);
const { fileExists, readFile, getSourceFile } = host;
host.fileExists = (name) => modules.has(name) || fileExists(name);
host.readFile = (name) => (modules.has(name) ? head + fs.readFileSync(modules.get(name), 'utf8') : readFile(name));
host.getSourceFile = (name, ...rest) =>
  modules.has(name) ? ts.createSourceFile(name, host.readFile(name), ...rest) : getSourceFile(name, ...rest);

const program = ts.createProgram([...modules.keys()], options, host);
const found = ts.getPreEmitDiagnostics(program);
for (const { file, start, messageText } of found) {
  const message = ts.flattenDiagnosticMessageText(messageText, '\n    ');
  if (!file) { console.log(message); continue; }
  const { line, character } = file.getLineAndCharacterOfPosition(start);
  const column = line === 0 && modules.has(file.fileName) ? Math.max(character - head.length, 0) : character;
  console.log(`${modules.get(file.fileName) ?? file.fileName}:${line + 1}:${column + 1}: ${message}`);
}
process.exit(found.length > 0 ? 1 : 0);
