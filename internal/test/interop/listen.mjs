// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Serves a handler of web requests, as the official TypeScript SDK makes them, over HTTP.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

// respond answers one of node's requests.
async function respond(handler, req, res) {
	const gone = new AbortController();
	res.on('close', () => gone.abort());
	const init = { method: req.method, headers: req.headers, signal: gone.signal };
	if (req.method === 'POST') Object.assign(init, { body: Readable.toWeb(req), duplex: 'half' });
	const response = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, init));
	res.writeHead(response.status, Object.fromEntries(response.headers));
	if (response.body) await pipeline(Readable.fromWeb(response.body), res);
	else res.end();
}

// listen serves at a free port, and writes the URL.
export async function listen(handler) {
	const listener = createServer((req, res) => respond(handler, req, res).catch(() => res.destroy())).listen(0, '127.0.0.1');
	await once(listener, 'listening');
	console.log(`http://127.0.0.1:${listener.address().port}/mcp`);
}
