// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Values that are mirrored in headers (x-mcp-header, Mcp-Name), from and to the official
// TypeScript SDK, for the tests in peers:
//
//	node headers.mjs send URL VALUES    sends each of a JSON list of objects, and asserts that it comes back
//	node headers.mjs receive            serves what returns its arguments, over HTTP; its URL is the first line of its output

import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpServer, ResourceTemplate, createMcpHandler } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { listen } from './listen.mjs';

async function send(url, values) {
	const client = new Client({ name: 'psi-interop', version: '1.0.0' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
	await client.connect(new StreamableHTTPClientTransport(new URL(url)));
	await client.listTools(); // whose schemas say which headers there are
	for (const value of JSON.parse(values)) {
		const result = await client.callTool({ name: 'echo', arguments: value });
		assert.deepEqual(result.structuredContent, value);
	}
	for (const { name } of (await client.listPrompts()).prompts) {
		const { messages } = await client.getPrompt({ name });
		assert.equal(messages[0].content.text, name);
	}
	for (const { uri } of (await client.listResources()).resources) {
		const { contents } = await client.readResource({ uri });
		assert.equal(contents[0].text, uri);
	}
	await client.close();
}

function newEcho() {
	const server = new McpServer({ name: 'typescript', version: '1.0.0' });
	const mirrored = (schema, header) => schema.optional().meta({ 'x-mcp-header': header });
	const inputSchema = z.object({
		text: mirrored(z.string(), 'Text'),
		count: mirrored(z.int(), 'Count'),
		sure: mirrored(z.boolean(), 'Sure'),
		inner: z.object({ text: mirrored(z.string(), 'Inner-Text') }).optional(),
	});
	server.registerTool('echo', { inputSchema }, async (args) => ({ content: [], structuredContent: args }));
	for (const name of ['plain', 'caf\u00e9 \u2615', ' spaces ', '=?base64?eA==?=']) {
		server.registerPrompt(name, {}, () => ({ messages: [{ role: 'user', content: { type: 'text', text: name } }] }));
	}
	server.registerResource('r', new ResourceTemplate('echo://{+path}', { list: undefined }), {}, async (uri) => ({ contents: [{ uri: uri.href, text: uri.href }] }));
	return server;
}

const [mode, ...args] = process.argv.slice(2);
await { send, receive: () => listen(createMcpHandler(newEcho)) }[mode](...args);
