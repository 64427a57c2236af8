// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The extension for skills of the official TypeScript SDK, for the tests in peers:
//
//	node skills.mjs serve DIRECTORY      serves the skills below a directory, over standard input and output
//	node skills.mjs load URL ERA         loads all skills of a server, and writes what it got as JSON
//
// What is written has an object for each skill: its entry, its files in base64 by URI, and the
// children of each of its directories by URI.

import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillVerificationError, SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { McpServer } from '@modelcontextprotocol/server';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

async function serve(directory) {
	const catalog = await loadSkills(directory, { strict: true });
	serveStdio(() => {
		const server = new McpServer({ name: 'typescript', version: '1.0.0' }, { capabilities: { resources: {} } });
		catalog.attach(server);
		return server;
	});
}

// children returns what is in a directory and below it.
async function children(skills, uri) {
	const { resources } = await skills.readDirectory(uri);
	const found = { [uri]: resources.map((r) => r.uri) };
	for (const r of resources) if (r.mimeType === 'inode/directory') Object.assign(found, await children(skills, r.uri));
	return found;
}

async function loadOne(skills, entry) {
	assert.deepEqual((await skills.get(entry.uri)).skill, entry);
	const files = {};
	for (const { uri } of entry.resources) {
		const file = await skills.read(entry, uri);
		assert.ok(file.verified);
		files[uri] = Buffer.from(file.bytes).toString('base64');
	}
	const altered = structuredClone(entry);
	altered.frontmatter.description += '!';
	await assert.rejects(skills.read(altered), SkillVerificationError);
	return { entry, files, directories: await children(skills, entry.uri.replace(/\/SKILL\.md$/, '')) };
}

async function load(url, era) {
	const client = new Client({ name: 'psi-interop', version: '1.0.0' }, { versionNegotiation: { mode: era } });
	await client.connect(new StreamableHTTPClientTransport(new URL(url)));
	const skills = new SkillsClient(client);
	assert.ok(skills.supported && skills.directoryRead);
	const loaded = [];
	for (const entry of (await skills.list()).skills) loaded.push(await loadOne(skills, entry));
	await assert.rejects(skills.get('skill://unknown/SKILL.md'));
	await client.close();
	console.log(JSON.stringify(loaded));
}

const [mode, ...args] = process.argv.slice(2);
await { serve, load }[mode](...args);
