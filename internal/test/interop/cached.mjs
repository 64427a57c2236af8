// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// What the client of the official TypeScript SDK keeps of a server, for the tests in peers:
//
//	node cached.mjs URL
//
// It connects without a request, with what another client has discovered, so that its first call
// has the id 0, and a progress token of the same.

import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const url = new URL(process.argv[2]);
const info = { name: 'psi-interop', version: '1.0.0' };

// counting is a transport that counts the requests by method.
function counting(counts) {
	const fetchCounted = (input, init) => {
		const { method } = init.body ? JSON.parse(init.body) : {};
		counts[method] = (counts[method] ?? 0) + 1;
		return fetch(input, init);
	};
	return new StreamableHTTPClientTransport(url, { fetch: fetchCounted });
}

const first = new Client(info, { versionNegotiation: { mode: 'auto' } });
await first.connect(counting({}));
const discover = first.getDiscoverResult();
await first.close();

const counts = {};
const client = new Client(info);
const heard = {};
const updated = new Promise((resolve) => (heard.updated = resolve));
const changed = new Promise((resolve) => (heard.changed = resolve));
client.setNotificationHandler('notifications/resources/updated', heard.updated);
client.setNotificationHandler('notifications/tools/list_changed', heard.changed);
await client.connect(counting(counts), { prior: { kind: 'modern', discover } });
const call = async (name, options) => (await client.callTool({ name, arguments: {} }, options)).content[0].text;
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);

const seen = [];
assert.equal(await call('count', { onprogress: ({ progress }) => seen.push(progress) }), 'counted');
assert.deepEqual(seen, [1, 2]);
assert.deepEqual(counts, { 'tools/call': 1 });

// What stays fresh is asked for once.
const { honoredFilter } = await client.listen({ toolsListChanged: true, resourceSubscriptions: ['test://version'] });
assert.deepEqual(honoredFilter, { toolsListChanged: true, resourceSubscriptions: ['test://version'] });
for (let i = 0; i < 2; i++) {
	assert.equal(await read('test://version'), '0');
	assert.equal(await read('test://forever'), 'forever');
	assert.deepEqual(await names(), ['bump', 'count']);
}
assert.deepEqual([counts['resources/read'], counts['tools/list']], [2, 1]);

// A change makes it stale, and nothing else.
assert.equal(await call('bump'), 'bumped');
await Promise.all([updated, changed]);
assert.equal(await read('test://version'), '1');
assert.equal(await read('test://forever'), 'forever');
assert.deepEqual(await names(), ['bump', 'bumped', 'count']);
assert.deepEqual([counts['resources/read'], counts['tools/list']], [3, 2]);

await client.close();
