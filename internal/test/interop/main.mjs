// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Runs the steps with every client over every transport:
//
//	node main.mjs PATH_OF_THE_QUICKSTART

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { clients } from './clients.mjs';
import { steps } from './steps.mjs';

const STEP_LIMIT = 15_000; // ms

const program = process.argv[2];
let passed = 0;
let failed = 0;

// limited fails if a promise takes too long.
function limited(promise) {
	let timer;
	const limit = new Promise((_, reject) => {
		timer = setTimeout(() => reject(new Error(`no end after ${STEP_LIMIT} ms`)), STEP_LIMIT);
	});
	return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

async function check(leg, name, step) {
	try {
		await limited(step());
		passed++;
		return true;
	} catch (error) {
		failed++;
		console.log(`FAIL  ${leg}: ${name}\n${error.stack}`);
		return false;
	}
}

// run takes one client through all steps.
async function run({ name, era, make }, transport, open) {
	const leg = `${name}, ${transport}`;
	const [passedBefore, failedBefore, started] = [passed, failed, Date.now()];
	const c = make();
	const errors = [];
	c.sdk.onerror = (error) => errors.push(error);
	c.onQuestion(async () => ({ action: 'cancel' }));
	const connected = await check(leg, 'handshake', () => c.sdk.connect(open(c)));
	for (const [step, body] of connected ? Object.entries(steps) : []) await check(leg, step, () => body(c, era));
	await check(leg, 'closes', () => c.sdk.close());
	// A client that is about to close, or has cancelled, has its own streams aborted.
	const surprises = errors.filter((error) => !/abort/i.test(`${error.name} ${error.message} ${error.cause}`));
	await check(leg, 'has nothing to complain about', async () => {
		if (surprises.length > 0) throw surprises[0];
	});
	console.log(`${leg}: ${passed - passedBefore} passed, ${failed - failedBefore} failed (${Date.now() - started} ms)`);
}

async function freePort() {
	const probe = createServer().listen(0, '127.0.0.1');
	await once(probe, 'listening');
	const { port } = probe.address();
	probe.close();
	await once(probe, 'close');
	return port;
}

// serveHTTP starts the quickstart and waits until it serves.
async function serveHTTP() {
	const address = `127.0.0.1:${await freePort()}`;
	const server = spawn(program, ['-http', address], { stdio: ['ignore', 'ignore', 'ignore'] });
	const url = new URL(`http://${address}/mcp`);
	for (const deadline = Date.now() + 10_000; ; ) {
		try {
			await fetch(url, { method: 'OPTIONS' });
			return { server, url };
		} catch (error) {
			if (Date.now() > deadline || server.exitCode !== null) throw error;
			await new Promise((resolve) => setTimeout(resolve, 20));
		}
	}
}

const { server, url } = await serveHTTP();
try {
	for (const client of clients) {
		await run(client, 'stdio', (c) => c.stdio({ command: program, stderr: 'ignore' }));
		await run(client, 'http', (c) => c.http(url));
	}
	await check('server', 'stops when it is told to', async () => {
		server.kill('SIGTERM');
		const [code] = server.exitCode === null ? await once(server, 'exit') : [server.exitCode];
		if (code !== 0) throw new Error(`exit code ${code}`);
	});
} finally {
	server.kill('SIGKILL');
}
console.log(`interop: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
