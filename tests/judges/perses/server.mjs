// What a Perses server does for a page that only looks: it serves the bundle, the plugins and one dashboard at a time, and
// passes queries on to Prometheus and Tempo.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const types = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json' };

/** Starts on a free port of loopback; `backends` has the URLs by name, `dashboards` the files by name. */
export async function startServer(home, backends, dashboards) {
  const plugins = listPlugins(path.join(home, 'plugins'));
  const server = http.createServer((request, response) => {
    const [, first, ...rest] = new URL(request.url, 'http://localhost').pathname.split('/');
    if (first in backends) return forward(request, response, backends[first], request.url.slice(first.length + 1));
    if (first === 'api') return answer(response, plugins.map((plugin) => plugin.module));
    if (first === 'dashboards') return answer(response, dashboards[rest[0]]);
    if (first === 'assets') return send(response, path.join(home, 'dist', ...rest));
    const plugin = first === 'plugins' && plugins.find(({ module }) => module.metadata.name === rest[0]);
    if (plugin) return send(response, path.join(plugin.folder, ...rest.slice(1)));
    return send(response, path.join(home, 'dist/index.html'));
  });
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => { server.close(); server.closeAllConnections(); } };
}

/** What `/api/v1/plugins` of Perses lists of each plugin, from its own package. */
function listPlugins(folder) {
  const read = (...names) => JSON.parse(fs.readFileSync(path.join(folder, ...names)));
  return fs.readdirSync(folder).map((name) => {
    const manifest = read(name, 'mf-manifest.json');
    const metadata = { name: manifest.name, version: manifest.metaData.buildInfo.buildVersion };
    const module = { kind: 'PluginModule', metadata, spec: read(name, 'package.json').perses, status: { isLoaded: true } };
    return { folder: path.join(folder, name), module };
  });
}

function forward(request, response, backend, rest) {
  const { host } = new URL(backend);
  const onward = http.request(backend + rest, { method: request.method, headers: { ...request.headers, host } }, (answered) => {
    response.writeHead(answered.statusCode, answered.headers);
    answered.pipe(response);
  });
  onward.on('error', (error) => { response.writeHead(502); response.end(String(error)); });
  request.pipe(onward);
}

function answer(response, value) {
  response.writeHead(value === undefined ? 404 : 200, { 'content-type': types['.json'] });
  response.end(JSON.stringify(value ?? null));
}

function send(response, file) {
  fs.readFile(file, (error, bytes) => {
    const type = types[path.extname(file)] ?? 'application/octet-stream';
    response.writeHead(error ? 404 : 200, { 'content-type': type, 'cache-control': 'max-age=3600' });
    response.end(bytes);
  });
}
