// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';

// A Browser has cookies, and fills in the forms of a login until it is sent to a client.
export class Browser {
	pages = []; // the titles of the pages with forms
	#cookies = new Map(); // by origin and name

	// visit returns the URL below redirectURI to which the browser is sent.
	async visit(page, redirectURI) {
		let [url, form] = [new URL(page), undefined];
		for (let step = 0; step < 30; step++) {
			const response = await this.#send(url, form);
			const location = response.headers.get('location');
			form = undefined;
			if (location) {
				url = new URL(location, url);
				if (url.origin + url.pathname === redirectURI) return url;
				continue;
			}
			const html = await response.text();
			assert.ok(response.ok && html.includes('<form'), `${url}: status ${response.status}\n${html}`);
			this.pages.push(html.match(/<title>([^<]*)/)[1]);
			const action = html.match(/<form[^>]*action="([^"]*)"/);
			if (action) url = new URL(unescape(action[1]), url);
			form = new URLSearchParams({ login: 'ada', username: 'test-user@127.0.0.1', password: 'verysecure', answer: 'allow' });
			for (const [, name, value] of html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)) form.set(name, unescape(value));
		}
		throw new Error('the login does not end');
	}

	async #send(url, form) {
		const cookies = [...this.#cookies].filter(([key]) => key.startsWith(url.origin + ' ')).map(([key, value]) => `${key.split(' ')[1]}=${value}`);
		const response = await fetch(url, { method: form ? 'POST' : 'GET', body: form, redirect: 'manual', headers: { Cookie: cookies.join('; ') } });
		for (const cookie of response.headers.getSetCookie()) {
			const [, name, value] = cookie.match(/^([^=]*)=([^;]*)/);
			this.#cookies.set(`${url.origin} ${name}`, value);
		}
		return response;
	}
}

const unescape = (text) => text.replaceAll('&#43;', '+').replaceAll('&#34;', '"').replaceAll('&amp;', '&');
