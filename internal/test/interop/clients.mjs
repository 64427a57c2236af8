// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// What differs between the two generations of the client.
//
// A client here has the SDK's methods for what a server offers, whose arguments
// are the same in both, and besides
//
//	call(params, options)     calls a tool
//	era()                     "legacy" or "modern"
//	notFound                  the code of the error about an unknown resource
//	onQuestion(handler)       answers elicitation/create
//	onToolsChanged(handler)   hears of changes to the list of tools, when it returns

import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import * as v1stdio from '@modelcontextprotocol/sdk/client/stdio.js';
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v1types from '@modelcontextprotocol/sdk/types.js';
import * as v2 from '@modelcontextprotocol/client';
import * as v2stdio from '@modelcontextprotocol/client/stdio';

const info = { name: 'psi-interop', version: '1.0.0' };
const capabilities = { elicitation: { form: {} } };

// clientV1 is that of @modelcontextprotocol/sdk, which knows the legacy era only.
function clientV1() {
	const sdk = new v1.Client(info, { capabilities });
	return {
		sdk,
		call: (params, options) => sdk.callTool(params, undefined, options),
		era: () => 'legacy',
		notFound: -32002,
		onQuestion: (handler) => sdk.setRequestHandler(v1types.ElicitRequestSchema, handler),
		onToolsChanged: async (handler) => sdk.setNotificationHandler(v1types.ToolListChangedNotificationSchema, handler),
		stdio: (params) => new v1stdio.StdioClientTransport(params),
		http: (url) => new v1http.StreamableHTTPClientTransport(url),
	};
}

// clientV2 is that of @modelcontextprotocol/client, which knows both.
function clientV2(mode) {
	const sdk = new v2.Client(info, { capabilities, versionNegotiation: { mode } });
	return {
		sdk,
		call: (params, options) => sdk.callTool(params, options),
		era: () => sdk.getProtocolEra(),
		notFound: -32602, // in the legacy era too, since the client maps the code
		onQuestion: (handler) => sdk.setRequestHandler('elicitation/create', handler),
		onToolsChanged: async (handler) => {
			sdk.setNotificationHandler('notifications/tools/list_changed', handler);
			if (sdk.getProtocolEra() === 'modern') await sdk.listen({ toolsListChanged: true });
		},
		stdio: (params) => new v2stdio.StdioClientTransport(params),
		http: (url) => new v2.StreamableHTTPClientTransport(url),
	};
}

// clients are the clients by name, with the era that each must come to speak.
export const clients = [
	{ name: 'sdk 1.x', era: 'legacy', make: clientV1 },
	{ name: 'client 2.x, legacy', era: 'legacy', make: () => clientV2('legacy') },
	{ name: 'client 2.x, modern', era: 'modern', make: () => clientV2({ pin: '2026-07-28' }) },
	{ name: 'client 2.x, auto', era: 'modern', make: () => clientV2('auto') },
];
