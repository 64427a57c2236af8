// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Has the client of @modelcontextprotocol/sdk, which knows the tasks of 2025-11-25, use the
// tools of the server at a URL, for the tests in peers:
//
//	node tasks.mjs http://127.0.0.1:8080/

import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'psi-interop', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { codec: 'av1' } }));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const tasks = client.experimental.tasks;

// follow calls a tool as a task and returns what became of it.
async function follow(name) {
	const seen = [];
	for await (const message of tasks.callToolStream({ name, arguments: {} }, CallToolResultSchema, { task: { ttl: 60_000 } })) {
		seen.push(message.type);
		if (message.type === 'result') return { seen, text: message.result.content[0].text, isError: message.result.isError };
		if (message.type === 'error') return { seen, code: message.error.code };
	}
}

assert.deepEqual(client.getServerCapabilities().tasks, { cancel: {}, requests: { tools: { call: {} } } });
const { tools } = await client.listTools();
const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport]));
assert.deepEqual(support, { ask: 'required', fail: 'optional', plain: undefined, quick: 'optional', wait: 'optional' });

const quick = await follow('quick');
assert.equal(quick.text, 'done');
assert.equal(quick.seen[0], 'taskCreated');
assert.equal((await follow('ask')).text, 'av1');
assert.ok((await follow('fail')).isError || (await follow('fail')).code);
assert.equal((await follow('plain')).code, -32601);
assert.equal((await client.callTool({ name: 'quick', arguments: {} })).content[0].text, 'done');

const stream = tasks.callToolStream({ name: 'wait', arguments: {} }, CallToolResultSchema, { task: {} });
const created = (await stream.next()).value;
assert.equal((await tasks.getTask(created.task.taskId)).status, 'working');
assert.equal((await tasks.cancelTask(created.task.taskId)).status, 'cancelled');
assert.equal((await tasks.getTask(created.task.taskId)).status, 'cancelled');
await assert.rejects(tasks.cancelTask(created.task.taskId), { code: -32602 });
await assert.rejects(tasks.getTask('unknown'), { code: -32602 });
await client.close();
