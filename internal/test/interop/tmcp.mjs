// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// A server made with tmcp, which has nothing of the official SDKs, for the tests in peers,
// which say what it has:
//
//	node tmcp.mjs          over standard input and output
//	node tmcp.mjs http     over HTTP; its URL is the first line of its output

import { once } from 'node:events';
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { StdioTransport } from '@tmcp/transport-stdio';
import { McpServer } from 'tmcp';
import { complete, prompt, resource, tool } from 'tmcp/utils';
import * as z from 'zod';
import { Gate } from './gate.mjs';
import { listen } from './listen.mjs';

const base64 = (value) => Buffer.from(value).toString('base64');
const list = { listChanged: true };
const server = new McpServer(
	{ name: 'tmcp', version: '1.0.0', description: 'demo' },
	{
		adapter: new ZodJsonSchemaAdapter(),
		capabilities: { tools: list, prompts: list, resources: { ...list, subscribe: true }, completions: {}, logging: {} },
	},
);
const add = (name, run, more = {}) => server.tool({ name, description: name, ...more }, run);

function addTools() {
	const began = new Gate();
	const ended = new Gate();
	add('add', async ({ a, b }) => tool.structured({ sum: a + b }),
		{ schema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }) });
	add('show', async () => tool.mix([
		tool.text('all'),
		tool.media('image', base64('image'), 'image/png'),
		tool.media('audio', base64('audio'), 'audio/wav'),
		tool.resourceLink({ uri: 'demo://readme', name: 'readme' }),
		tool.resource({ uri: 'demo://blob', blob: base64('blob') }),
	]));
	add('fail', async () => tool.error('out of order'));
	add('wait', async () => {
		const { signal } = server.ctx;
		began.open();
		if (!signal.aborted) await once(signal, 'abort');
		ended.open();
		return tool.text('');
	});
	add('waits', async () => tool.text((await began.pass()) ?? ''));
	add('stopped', async () => tool.text((await ended.pass()) ?? ''));
}

function addAskingTools() {
	const asking = (name, run) => add(name, async () => tool.text(await run()), { replayable: true });
	asking('ask', async () => {
		const { content } = await server.elicitation('Who are you?', z.object({ name: z.string() }));
		return `hello ${content.name}`;
	});
	asking('visit', async () => {
		const { action } = await server.elicitation('Go there', 'https://example.com/visit');
		return action === 'accept' ? 'visited' : action;
	});
	asking('sample', async () => {
		const { content } = await server.message({ messages: [{ role: 'user', content: { type: 'text', text: 'ping' } }], maxTokens: 10 });
		return `model: ${[content].flat()[0].text}`;
	});
	asking('roots', async () => {
		await server.refreshRoots();
		return server.roots[0].uri;
	});
}

function addTellingTools() {
	add('count', async ({ steps }) => {
		for (let done = 1; done <= steps; done++) server.progress(done, steps);
		return tool.text('counted');
	}, { schema: z.object({ steps: z.number() }) });
	add('log', async () => {
		server.log('info', 'logged');
		return tool.text('');
	});
	add('grow', async () => {
		add('grown', async () => tool.text(''));
		return tool.text('grown');
	});
	add('touch', async () => {
		server.changed('resource', 'demo://readme');
		return tool.text('touched');
	});
}

function addOthers() {
	const suggest = (values) => (value) => complete.values(values.filter((candidate) => candidate.startsWith(value)), false);
	server.prompt({ name: 'greet', description: 'greet', schema: z.object({ name: z.string() }), complete: { name: suggest(['Ada', 'Alan', 'Grace']) } },
		async ({ name }) => prompt.message(`Greet ${name}`));
	server.resource({ name: 'readme', description: 'readme', uri: 'demo://readme' }, async (uri) => resource.text(uri, 'read me', 'text/plain'));
	server.template({ name: 'item', description: 'item', uri: 'demo://item/{id}', complete: { id: suggest(['10', '11', '20']) } },
		async (uri, { id }) => resource.text(uri, `item ${id}`, 'text/plain'));
}

addTools();
addAskingTools();
addTellingTools();
addOthers();
if (process.argv[2] === 'http') {
	const transport = new HttpTransport(server, { path: '/mcp' });
	await listen({ fetch: (request) => transport.respond(request) });
} else {
	new StdioTransport(server).listen();
}
