// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// What tools that wait for each other share.

const LIMIT = 10_000; // ms

// A gate lets one pass for each time that it was opened.
export class Gate {
	#opened = 0;
	#waiting = [];

	open() {
		const next = this.#waiting.shift();
		next ? next() : this.#opened++;
	}

	async pass() {
		if (this.#opened > 0) return void this.#opened--;
		await new Promise((resolve, reject) => {
			this.#waiting.push(resolve);
			setTimeout(() => reject(new Error('nothing happened')), LIMIT).unref();
		});
	}
}
