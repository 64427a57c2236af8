// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// A user with a browser, who logs in and goes back to the client:
//
//	node visit.mjs URL

import { Browser } from './browser.mjs';

const page = new URL(process.argv[2]);
const back = await new Browser().visit(page, page.searchParams.get('redirect_uri'));
await fetch(back);
