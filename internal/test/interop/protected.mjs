// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// A server that requires a token, made with the official TypeScript SDK, and the authorization
// server that the SDK had in 1.x, for the tests in peers:
//
//	node protected.mjs      its URL is the first line of its output
//
// A GET of one of these answers with what the authorization server has done since the last:
//
//	/expire    access tokens are invalid from now on
//	/revoke    refresh tokens, too
//	/forget    clients, too
//	/log       nothing changes

import { once } from 'node:events';
import { createServer } from 'node:http';
import { McpServer, OAuthError, OAuthErrorCode, createMcpHandler, getOAuthProtectedResourceMetadataUrl, oauthMetadataResponse, requireBearerAuth, requireScopes } from '@modelcontextprotocol/server';
import { InvalidGrantError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { createOAuthMetadata, mcpAuthRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { listen } from './listen.mjs';

const scopesSupported = ['notes:read', 'notes:write'];
const clients = new Map();
const codes = new Map();
const access = new Map();
const refresh = new Map();
let log = [];

// issue makes both tokens for what was granted.
function issue(how, granted) {
	log.push(how);
	const [token, next] = [crypto.randomUUID(), crypto.randomUUID()];
	access.set(token, { ...granted, token, expiresAt: Date.now() / 1000 + 3600 });
	refresh.set(next, granted);
	return { access_token: token, refresh_token: next, token_type: 'bearer', expires_in: 3600, scope: granted.scopes.join(' ') };
}

const provider = {
	clientsStore: {
		getClient: (id) => clients.get(id),
		registerClient(client) {
			log.push('register');
			clients.set(client.client_id, client);
			return client;
		},
	},
	async authorize(client, { scopes, state, redirectUri, codeChallenge, resource }, res) {
		log.push(`authorize ${scopes.join(' ')}`);
		const code = crypto.randomUUID();
		codes.set(code, { codeChallenge, granted: { clientId: client.client_id, scopes, resource } });
		res.redirect(`${redirectUri}?${new URLSearchParams({ code, state })}`);
	},
	challengeForAuthorizationCode: async (_, code) => codes.get(code).codeChallenge,
	exchangeAuthorizationCode: async (_, code) => issue('code', codes.get(code).granted),
	async exchangeRefreshToken(_, token) {
		const granted = refresh.get(token);
		if (!granted) throw new InvalidGrantError('unknown');
		refresh.delete(token);
		return issue('refresh', granted);
	},
};

const app = createMcpExpressApp();
const server = createServer(app).listen(0, '127.0.0.1');
await once(server, 'listening');
const issuerUrl = new URL(`http://127.0.0.1:${server.address().port}`);
app.use(mcpAuthRouter({ provider, issuerUrl, scopesSupported }));
// lost is what the server loses with each path.
const lost = { '/expire': [access], '/revoke': [access, refresh], '/forget': [access, refresh, clients], '/log': [] };

function lose(path) {
	for (const map of lost[path]) map.clear();
	const done = log;
	log = [];
	return Response.json(done);
}

function newServer() {
	const notes = new McpServer({ name: 'notes', version: '1.0.0' });
	const tool = (name, config, text) => notes.registerTool(name, config, async (extra) => ({ content: [{ type: 'text', text: text(extra) }] }));
	tool('scopes', {}, ({ http }) => http.authInfo.scopes.join(' '));
	tool('write', { scopeChallenge: requireScopes(...scopesSupported) }, () => 'written');
	return notes;
}

const handler = createMcpHandler(newServer);
const oauthMetadata = createOAuthMetadata({ provider, issuerUrl });
const verifier = {
	async verifyAccessToken(token) {
		if (!access.has(token)) throw new OAuthError(OAuthErrorCode.InvalidToken, 'unknown');
		return access.get(token);
	},
};

// fetch serves the metadata, and the server to those who have a token for it.
async function fetch(request) {
	const { pathname } = new URL(request.url);
	if (lost[pathname]) return lose(pathname);
	const resource = new URL('/mcp', request.url);
	const metadata = oauthMetadataResponse(request, { oauthMetadata, resourceServerUrl: resource, scopesSupported });
	if (metadata) return metadata;
	const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
	const gate = requireBearerAuth({ verifier, requiredScopes: ['notes:read'], resourceMetadataUrl, expectedResource: resource });
	const authInfo = await gate(request);
	return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
}

await listen({ fetch });
