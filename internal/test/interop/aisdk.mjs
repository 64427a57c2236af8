// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The client of Vercel's AI SDK, which has nothing of the official SDKs, against the server of
// the tests in peers:
//
//	node aisdk.mjs http URL
//	node aisdk.mjs sse URL

import assert from 'node:assert/strict';
import { ElicitationRequestSchema, createMCPClient } from '@ai-sdk/mcp';

const [type, url] = process.argv.slice(2);
const client = await createMCPClient({
	transport: { type, url },
	capabilities: { elicitation: {} },
});
client.onElicitationRequest(ElicitationRequestSchema, async ({ params }) => {
	assert.equal(params.message, 'Who are you?');
	return { action: 'accept', content: { name: 'Ada' } };
});

assert.equal(client.serverInfo.name, 'psi');
const tools = await client.tools();
const call = (name, input = {}) => tools[name].execute(input, { toolCallId: name, messages: [] });
const text = async (name, input) => (await call(name, input)).content[0].text;

assert.deepEqual((await call('add', { a: 2, b: 3 })).structuredContent, { sum: 5 });
assert.equal(await text('ask'), 'hello Ada');
assert.equal(await text('count', { steps: 3 }), 'counted');
assert.equal(await text('log'), '');
const failed = await call('fail');
assert.deepEqual([failed.isError, failed.content[0].text], [true, 'out of order']);
await assert.rejects(call('sample'), /capability/);
const many = Array.from({ length: 50 }, (_, n) => call('add', { a: n, b: 1 }));
assert.deepEqual((await Promise.all(many)).map((result) => result.structuredContent.sum), Array.from({ length: 50 }, (_, n) => n + 1));

assert.deepEqual((await client.listResources()).resources.map(({ uri }) => uri), ['demo://readme']);
assert.deepEqual((await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate), ['demo://item/{id}']);
assert.equal((await client.readResource({ uri: 'demo://item/7' })).contents[0].text, 'item 7');
await assert.rejects(client.readResource({ uri: 'demo://nothing' }));
const greeting = await client.experimental_getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
assert.equal(greeting.messages[0].content.text, 'Greet Ada');
const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'A' } });
assert.deepEqual(completion.values, ['Ada', 'Alan']);

await client.close();
