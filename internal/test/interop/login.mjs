// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The client of the official TypeScript SDK at a server that requires authorization, for the
// tests in peers:
//
//	node login.mjs login URL ERA             logs in, calls a tool, and once more with another scope
//	node login.mjs proof URL ERA TOKEN_URL   proves possession of a key (DPoP), for which there is a token

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const redirectURI = 'http://127.0.0.1/callback';

// A User logs in without a browser. It is the client's provider.
class User {
	asked = []; // the scopes of each login
	#kept = {};
	#state = 0;

	get redirectUrl() {
		return redirectURI;
	}

	get clientMetadata() {
		return { client_name: 'psi-interop', redirect_uris: [redirectURI], token_endpoint_auth_method: 'none' };
	}

	state = () => `state-${++this.#state}`;
	clientInformation = () => this.#kept.client;
	saveClientInformation = (client) => void (this.#kept.client = client);
	tokens = () => this.#kept.tokens;
	saveTokens = (tokens) => void (this.#kept.tokens = tokens);
	codeVerifier = () => this.#kept.verifier;
	saveCodeVerifier = (verifier) => void (this.#kept.verifier = verifier);

	// redirectToAuthorization fills in the form of the page, and keeps where it leads.
	async redirectToAuthorization(page) {
		this.asked.push(page.searchParams.get('scope'));
		const form = new URLSearchParams({ user: 'ada', password: 'test', answer: 'allow' });
		const response = await fetch(page, { method: 'POST', body: form, redirect: 'manual' });
		const back = new URL(response.headers.get('location'));
		assert.equal(back.origin + back.pathname, redirectURI);
		assert.equal(back.searchParams.get('state'), `state-${this.#state}`);
		this.callback = back.searchParams;
	}
}

async function connect(url, era, authProvider) {
	const client = new Client({ name: 'psi-interop', version: '1.0.0' }, { versionNegotiation: { mode: era } });
	const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
	await client.connect(transport);
	return { client, transport };
}

// withLogin does something that may need a login first.
async function withLogin(url, user, something) {
	try {
		return await something();
	} catch (error) {
		if (!(error instanceof UnauthorizedError)) throw error;
		await new StreamableHTTPClientTransport(new URL(url), { authProvider: user }).finishAuth(user.callback);
		return something();
	}
}

async function login(url, era) {
	const user = new User();
	const { client } = await withLogin(url, user, () => connect(url, era, user));
	assert.deepEqual(user.asked, ['notes:read']);
	const call = (name) => client.callTool({ name, arguments: {} }).then((result) => result.content[0].text);
	assert.equal(await call('whoami'), 'ada');
	assert.deepEqual(user.asked, ['notes:read']);
	assert.equal(await withLogin(url, user, () => call('write')), 'written');
	assert.equal(user.asked.length, 2);
	assert.deepEqual(user.asked[1].split(' ').sort(), ['notes:read', 'notes:write']);
	await client.close();
}

async function proof(url, era, tokenURL) {
	const session = await DpopSession.create();
	const { crv, kty, x, y } = await crypto.subtle.exportKey('jwk', session.keyPair.publicKey);
	const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
	const token = await (await fetch(`${tokenURL}?jkt=${thumbprint}`)).text();
	const user = new User();
	user.saveTokens({ access_token: token, token_type: 'DPoP' });
	user.dpop = () => session;
	const { client } = await connect(url, era, user);
	for (let i = 0; i < 3; i++) assert.equal((await client.callTool({ name: 'whoami', arguments: {} })).content[0].text, 'ada');
	await client.close();
	const stolen = await fetch(url, { method: 'POST', headers: { Authorization: `DPoP ${token}` } });
	assert.equal(stolen.status, 401);
}

const [mode, ...args] = process.argv.slice(2);
await { login, proof }[mode](...args);
