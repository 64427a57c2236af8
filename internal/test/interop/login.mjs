// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The client of the official TypeScript SDK at a server that requires authorization, for the
// tests in peers:
//
//	node login.mjs login URL ERA             logs in, calls a tool, and once more with another scope
//	node login.mjs front URL ERA WHO PAGES   the same in front of a provider that shows its own pages; and refreshes, and logs out
//	node login.mjs proof URL ERA TOKEN_URL   proves possession of a key (DPoP), for which there is a token

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { Client, DpopSession, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { Browser } from './browser.mjs';

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

// A Visitor is a User whose browser goes wherever it is sent, to the provider and back.
class Visitor extends User {
	browser = new Browser();

	async redirectToAuthorization(page) {
		this.asked.push(page.searchParams.get('scope'));
		this.callback = (await this.browser.visit(page, redirectURI)).searchParams;
		assert.equal(this.callback.get('error'), null, String(this.callback));
	}

	invalidateCredentials = () => this.saveTokens(undefined);

	// expire makes the server refuse the access token, as it does when five minutes are over.
	expire = () => this.saveTokens({ ...this.tokens(), access_token: 'expired' });
}

async function front(url, era, who, pages) {
	const user = new Visitor();
	const { client } = await withLogin(url, user, () => connect(url, era, user));
	const call = (name) => client.callTool({ name, arguments: {} }).then((result) => result.content[0].text);
	assert.equal(await call('whoami'), who);
	assert.deepEqual(user.browser.pages, pages.split(','));
	assert.equal(await withLogin(url, user, () => call('write')), 'written');
	assert.equal(user.asked.length, 2);
	assert.deepEqual(user.asked[1].split(' ').sort(), ['notes:read', 'notes:write']);

	for (let i = 0; i < 2; i++) {
		const before = user.tokens().refresh_token;
		user.expire();
		assert.equal(await call('write'), 'written');
		assert.notEqual(user.tokens().refresh_token, before);
	}
	user.expire(); // and several calls notice at the same time
	assert.deepEqual(await Promise.all(['whoami', 'write', 'whoami', 'write'].map(call)), [who, 'written', who, 'written']);
	assert.equal(user.asked.length, 2, 'a refresh has asked the user');

	const { token_endpoint } = await (await fetch(new URL('/.well-known/oauth-authorization-server', url))).json();
	const form = new URLSearchParams({ token: user.tokens().refresh_token, client_id: user.clientInformation().client_id });
	assert.equal((await fetch(token_endpoint.replace('/token', '/revoke'), { method: 'POST', body: form })).status, 200);
	user.expire();
	assert.equal(await withLogin(url, user, () => call('whoami')), who);
	assert.equal(user.asked.length, 3, 'the user who has logged out must log in');
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
await { login, front, proof }[mode](...args);
