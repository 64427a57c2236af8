// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// What every client does with the quickstart, in order. A step fails by throwing.

import assert from 'node:assert/strict';

const textOf = (result) => result.content.map((block) => block.text).join('\n');

// rejects waits for a protocol error with a code.
async function rejects(promise, code) {
	await assert.rejects(promise, (error) => {
		assert.equal(error.code, code, `${error}`);
		return true;
	});
}

// until waits for a condition to come true.
async function until(what, condition) {
	for (const deadline = Date.now() + 5000; !condition(); ) {
		assert.ok(Date.now() < deadline, `waited in vain for ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 10));
	}
}

export const steps = {
	async 'connects'(c, era) {
		assert.equal(c.era(), era);
		assert.equal(c.sdk.getServerVersion().name, 'quickstart');
		assert.match(c.sdk.getInstructions(), /playground/);
		const offers = c.sdk.getServerCapabilities();
		for (const capability of ['tools', 'prompts', 'resources', 'completions']) assert.ok(offers[capability], capability);
	},

	async 'lists tools'(c) {
		const { tools } = await c.sdk.listTools();
		assert.deepEqual(tools.map((tool) => tool.name), ['add', 'countdown', 'order', 'secret', 'swatch']);
		const add = tools[0];
		assert.equal(add.description, 'Add two integers.');
		assert.deepEqual(add.inputSchema.required, ['a', 'b']);
		assert.equal(add.outputSchema.properties.sum.type, 'integer');
	},

	async 'calls a tool'(c) {
		const result = await c.call({ name: 'add', arguments: { a: 2, b: 3 } });
		assert.deepEqual(result.structuredContent, { sum: 5 });
		assert.equal(textOf(result), '{"sum":5}');
		assert.ok(!result.isError);
	},

	async 'is told of arguments that do not fit'(c) {
		const result = await c.call({ name: 'add', arguments: { a: 'two', b: 3 } });
		assert.equal(result.isError, true);
		assert.match(textOf(result), /\/a: expected integer, got string "two"/);
	},

	async 'is told of a tool that is not there'(c) {
		await rejects(c.call({ name: 'subtract', arguments: {} }), -32602);
	},

	async 'gets a picture'(c) {
		const { content } = await c.call({ name: 'swatch', arguments: { colour: 'red' } });
		assert.equal(content[0].type, 'image');
		assert.equal(content[0].mimeType, 'image/png');
		assert.equal(Buffer.from(content[0].data, 'base64').subarray(1, 4).toString(), 'PNG');
	},

	async 'lists and gets prompts'(c) {
		const { prompts } = await c.sdk.listPrompts();
		assert.deepEqual(prompts.map((prompt) => [prompt.name, prompt.arguments.map((a) => [a.name, a.required ?? false])]), [
			['explain', [['topic', true], ['style', false]]],
		]);
		const { messages } = await c.sdk.getPrompt({ name: 'explain', arguments: { topic: 'monads', style: 'pirate' } });
		assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'Explain monads to me, in a pirate style.' } }]);
		await rejects(c.sdk.getPrompt({ name: 'explain', arguments: {} }), -32602);
	},

	async 'completes'(c) {
		const prompt = { type: 'ref/prompt', name: 'explain' };
		const { completion } = await c.sdk.complete({ ref: prompt, argument: { name: 'style', value: 'pi' } });
		assert.deepEqual(completion.values, ['pirate']);
		const template = { type: 'ref/resource', uri: 'docs:///{+path}' };
		const path = await c.sdk.complete({ ref: template, argument: { name: 'path', value: 'm' } });
		assert.deepEqual(path.completion.values, ['menu/']);
	},

	async 'lists resources and templates'(c) {
		const { resources } = await c.sdk.listResources();
		assert.deepEqual(resources.map((r) => [r.uri, r.mimeType]), [
			['docs:///menu/pizza.csv', 'text/csv'],
			['docs:///secrets.md', 'text/markdown'],
			['docs:///welcome.md', 'text/markdown'],
		]);
		assert.ok(resources.every((r) => r.size > 0));
		const { resourceTemplates } = await c.sdk.listResourceTemplates();
		assert.deepEqual(resourceTemplates.map((t) => [t.uriTemplate, t.name]), [['docs:///{+path}', 'docs']]);
	},

	async 'reads resources'(c) {
		const file = await c.sdk.readResource({ uri: 'docs:///welcome.md' });
		assert.match(file.contents[0].text, /^# Welcome/);
		const directory = await c.sdk.readResource({ uri: 'docs:///' });
		assert.equal(directory.contents[0].text, 'menu/\nsecrets.md\nwelcome.md\n');
		for (const uri of ['docs:///nowhere', 'docs:///../main.go', 'docs:///%2e%2e/main.go']) {
			await rejects(c.sdk.readResource({ uri }), c.notFound);
		}
	},

	async 'is asked, and answers'(c) {
		const questions = [];
		c.onQuestion(async ({ params }) => {
			questions.push(params);
			return { action: 'accept', content: { address: 'Via Roma 1', agreed: true } };
		});
		const result = await c.call({ name: 'order', arguments: { pizza: 'funghi' } });
		assert.equal(questions.length, 1);
		assert.deepEqual(questions[0].requestedSchema.required, ['address', 'agreed']);
		const [, price] = questions[0].message.match(/^A funghi is (\d+) euros today\. Where to\?$/);
		assert.equal(textOf(result), `One funghi for ${price} euros is on its way to Via Roma 1.`);
	},

	async 'is asked, and declines'(c) {
		c.onQuestion(async () => ({ action: 'decline' }));
		const result = await c.call({ name: 'order', arguments: { pizza: 'marinara' } });
		assert.equal(result.isError, true);
		assert.match(textOf(result), /declined/);
	},

	async 'sees progress'(c) {
		const told = [];
		const onprogress = ({ progress, total, message }) => told.push([progress, total, message]);
		const result = await c.call({ name: 'countdown', arguments: { from: 3, pause: 20 } }, { onprogress });
		assert.equal(textOf(result), 'Liftoff!');
		assert.deepEqual(told, [[1, 3, '3'], [2, 3, '2'], [3, 3, '1']]);
	},

	async 'cancels'(c) {
		const abort = new AbortController();
		const onprogress = ({ progress }) => progress === 2 && abort.abort();
		const started = Date.now();
		await assert.rejects(c.call({ name: 'countdown', arguments: { from: 100, pause: 100 } }, { onprogress, signal: abort.signal }));
		assert.ok(Date.now() - started < 5000, 'that took too long');
		assert.deepEqual((await c.call({ name: 'add', arguments: { a: 1, b: 1 } })).structuredContent, { sum: 2 });
	},

	async 'calls tools at the same time'(c) {
		const sums = await Promise.all([...Array(20).keys()].map((a) => c.call({ name: 'add', arguments: { a, b: a } })));
		assert.deepEqual(sums.map((result) => result.structuredContent.sum), [...Array(20).keys()].map((a) => 2 * a));
	},

	async 'sees the list of tools change'(c) {
		let changes = 0;
		await c.onToolsChanged(() => changes++);
		for (const revealed of [true, false]) {
			const before = changes;
			const result = await c.call({ name: 'secret', arguments: { revealed } });
			assert.equal(result.content[0].type, 'resource_link');
			assert.match((await c.sdk.readResource({ uri: result.content[0].uri })).contents[0].text, /^# Secrets/);
			await until('the change of the list', () => changes > before);
			const { tools } = await c.sdk.listTools();
			assert.equal(tools.some((tool) => tool.name === 'whisper'), revealed);
			if (revealed) assert.equal(textOf(await c.call({ name: 'whisper' })), 'The cake is real.');
		}
	},
};
