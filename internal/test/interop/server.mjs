// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// A server made with the official TypeScript SDK, for the tests in peers, which say
// what it has:
//
//	node server.mjs          over standard input and output
//	node server.mjs http     over HTTP; its URL is the first line of its output

import { once } from 'node:events';
import { McpServer, ResourceTemplate, completable, createMcpHandler, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { Gate } from './gate.mjs';
import { listen } from './listen.mjs';

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const base64 = (value) => Buffer.from(value).toString('base64');
const empty = z.object({});

// What all instances share: over HTTP, every request has one of its own.
const began = new Gate();
const ended = new Gate();
let grown = false;
let http; // the HTTP handler, if there is one

function addTools(server) {
	const tool = (name, run, inputSchema = empty, more = {}) => server.registerTool(name, { inputSchema, ...more }, run);
	tool('add', async ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
		z.object({ a: z.number(), b: z.number() }), { outputSchema: z.object({ sum: z.number() }) });
	tool('show', async () => ({
		content: [
			{ type: 'text', text: 'all' },
			{ type: 'image', data: base64('image'), mimeType: 'image/png' },
			{ type: 'audio', data: base64('audio'), mimeType: 'audio/wav' },
			{ type: 'resource_link', uri: 'demo://readme', name: 'readme' },
			{ type: 'resource', resource: { uri: 'demo://blob', blob: base64('blob') } },
		],
	}));
	tool('fail', async () => {
		throw new Error('out of order');
	});
	tool('wait', async (_, { mcpReq: { signal } }) => {
		began.open();
		if (!signal.aborted) await once(signal, 'abort');
		ended.open();
		return text('');
	});
	tool('waits', async () => text((await began.pass()) ?? ''));
	tool('stopped', async () => text((await ended.pass()) ?? ''));
	if (grown) tool('grown', async () => text(''));
}

function addAskingTools(server) {
	const asking = (name, question, finish) =>
		server.registerTool(name, { inputSchema: empty }, async (_, { mcpReq: { inputResponses } }) => {
			const answer = inputResponse(inputResponses, 'q');
			return answer.kind === 'missing' ? inputRequired({ inputRequests: { q: question } }) : text(finish(answer));
		});
	const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
	asking('ask', inputRequired.elicit({ message: 'Who are you?', requestedSchema }), ({ content }) => `hello ${content.name}`);
	asking('visit', inputRequired.elicitUrl({ message: 'Go there', url: 'https://example.com/visit' }),
		({ action }) => (action === 'accept' ? 'visited' : action));
	const messages = [{ role: 'user', content: { type: 'text', text: 'ping' } }];
	asking('sample', inputRequired.createMessage({ messages, maxTokens: 10 }),
		({ result }) => `model: ${[result.content].flat()[0].text}`);
	asking('roots', inputRequired.listRoots(), ({ roots }) => roots[0].uri);
}

function addTellingTools(server) {
	const tool = (name, run, inputSchema = empty) => server.registerTool(name, { inputSchema }, run);
	tool('count', async ({ steps }, { mcpReq: { _meta, notify } }) => {
		for (let progress = 1; progress <= steps; progress++) {
			await notify({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress, total: steps } });
		}
		return text('counted');
	}, z.object({ steps: z.number() }));
	tool('log', async (_, { mcpReq }) => text((await mcpReq.log('info', 'logged')) ?? ''));
	tool('grow', async () => {
		grown = true;
		if (http) http.notify.toolsChanged();
		else server.sendToolListChanged();
		return text('grown');
	});
	tool('touch', async () => {
		if (http) http.notify.resourceUpdated('demo://readme');
		else await server.server.sendResourceUpdated({ uri: 'demo://readme' });
		return text('touched');
	});
}

function addOthers(server) {
	const suggest = (values) => (value) => values.filter((candidate) => candidate.startsWith(value));
	const name = completable(z.string(), suggest(['Ada', 'Alan', 'Grace']));
	server.registerPrompt('greet', { argsSchema: z.object({ name }) }, (args) => ({
		messages: [{ role: 'user', content: { type: 'text', text: `Greet ${args.name}` } }],
	}));
	const contents = (uri, value) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: value }] });
	server.registerResource('readme', 'demo://readme', {}, async (uri) => contents(uri, 'read me'));
	const template = new ResourceTemplate('demo://item/{id}', { list: undefined, complete: { id: suggest(['10', '11', '20']) } });
	// Only the legacy era asks for this, and it is told of every update.
	server.server.setRequestHandler('resources/subscribe', async () => ({}));
	server.server.setRequestHandler('resources/unsubscribe', async () => ({}));
	server.registerResource('item', template, {}, async (uri, { id }) => contents(uri, `item ${id}`));
}

function newServer() {
	const capabilities = { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} };
	const server = new McpServer({ name: 'typescript', version: '1.0.0' }, { capabilities });
	addTools(server);
	addAskingTools(server);
	addTellingTools(server);
	addOthers(server);
	return server;
}

if (process.argv[2] === 'http') {
	http = createMcpHandler(newServer);
	await listen(http);
} else {
	serveStdio(newServer);
}
