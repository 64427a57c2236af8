// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// The OpenID provider of npm's oidc-provider, with one client, for the tests in peers:
//
//	node oidc.mjs PORT REDIRECT_URI
//
// It prints a line when it listens. Its ID tokens contain the subject only; the rest is user
// info. Its access tokens live for a minute, and refresh tokens rotate.

import Provider from 'oidc-provider';

const [port, redirectURI] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
	clients: [{ client_id: 'psi', client_secret: 'a-secret', redirect_uris: [redirectURI], grant_types: ['authorization_code', 'refresh_token'] }],
	claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
	findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true }) }),
	pkce: { required: () => true },
	rotateRefreshToken: true,
	issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
	ttl: { AccessToken: 60 },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(issuer));
