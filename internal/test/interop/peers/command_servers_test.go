// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

// A published server is a server that the command psi is tested with. None of them needs a
// network.
type published struct {
	name    string   // also the name of the generated package
	node    string   // file below internal/test/interop/node_modules, or …
	program string   // … package path of a Go program
	args    []string // DIR stands for a directory that contains hello.txt

	tools  int      // number of tools
	call   []string // arguments of psi call
	says   string   // expected in the output of psi call
	read   string   // URI of a resource; "" for none
	reads  string   // expected in the output of psi read
	errors int      // number of errors reported by psi lint

	use string // a call with the generated client c
	got string // expected in the output of the program with that call
}

const (
	official = "@modelcontextprotocol/server-"
	goSDK    = "github.com/modelcontextprotocol/go-sdk/examples/server/"
	mcpGo    = "github.com/mark3labs/mcp-go/examples/"
)

var publishedServers = []published{
	{
		name: "everything", node: official + "everything/dist/index.js",
		tools: 15, call: []string{"get-sum", "a=2", "b=3"}, says: "The sum of 2 and 3 is 5.",
		read: "demo://resource/static/document/features.md", reads: "# ",
		use: `c.GetStructuredContent(ctx, everything.GetStructuredContentInput{Location: everything.GetStructuredContentInputLocationChicago})`,
		got: "Temperature:36",
	},
	{
		name: "filesystem", node: official + "filesystem/dist/index.js", args: []string{"DIR"},
		tools: 14, call: []string{"list_directory", "path=DIR"}, says: "[FILE] hello.txt",
		use: `c.ReadTextFile(ctx, filesystem.ReadTextFileInput{Path: "DIR/hello.txt", Head: new(float64(1))})`, got: "hello",
	},
	{
		name: "memory", node: official + "memory/dist/index.js",
		tools: 9, call: []string{"read_graph"}, says: `"entities": []`,
		use: `c.SearchNodes(ctx, memory.SearchNodesInput{Query: "nothing"})`, got: "Entities:[]",
	},
	{
		name: "thinking", node: official + "sequential-thinking/dist/index.js",
		tools: 1, call: []string{"sequentialthinking", "thought=hm", "thoughtNumber=1", "totalThoughts=2", "nextThoughtNeeded=true"}, says: `"totalThoughts": 2`,
		use: `c.Sequentialthinking(ctx, thinking.SequentialthinkingInput{Thought: "hm", ThoughtNumber: 1, TotalThoughts: 2, NextThoughtNeeded: true})`,
		got: "TotalThoughts:2",
	},
	{
		name: "budget", node: official + "budget-allocator/dist/index.js", args: []string{"--stdio"},
		tools: 1, call: []string{"get-budget-data"}, says: "Default Budget: $100,000",
		read: "ui://budget-allocator/mcp-app.html", reads: "<html",
		use: `c.GetBudgetData(ctx)`, got: "Currency:USD",
	},
	{
		name: "calc", node: "@coo-quack/calc-mcp/dist/index.js",
		tools: 21, call: []string{"math", "expression=6*7"}, says: "42",
		use: `c.Hash(ctx, calc.HashInput{Input: "a", Algorithm: calc.HashInputAlgorithmSha256})`, got: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
	},
	{
		name: "clock", node: "time-mcp/dist/index.js",
		tools: 6, call: []string{"days_in_month", "date=2026-02-03"}, says: "28",
		use: `c.DaysInMonth(ctx, clock.DaysInMonthInput{Date: new("2024-02-03")})`, got: "29",
	},
	{
		name: "bank", node: "@allpepper/memory-bank-mcp/dist/main/index.js",
		tools: 5, call: []string{"memory_bank_write", "projectName=p", "fileName=f.md", "content=remember"}, says: "f.md",
		use: `c.MemoryBankRead(ctx, bank.MemoryBankReadInput{ProjectName: "p", FileName: "f.md"})`, got: "remember",
	},
	{
		name: "sdkmemory", program: goSDK + "memory",
		tools: 9, call: []string{"read_graph"}, says: "Graph read successfully", errors: 1,
		use: `c.CreateEntities(ctx, sdkmemory.CreateEntitiesInput{Entities: []sdkmemory.CreateEntitiesInputEntitiesItem{{Name: "Ada", EntityType: "person", Observations: []string{"counts"}}}})`,
		got: "Entities:[{Name:Ada EntityType:person Observations:[counts]}]",
	},
	{
		name: "sdkthinking", program: goSDK + "sequentialthinking",
		tools: 3, call: []string{"start_thinking", "problem=hm"}, says: "for problem: hm", read: "thinking://sessions",
		use: `c.StartThinking(ctx, sdkthinking.StartThinkingInput{Problem: "hm", SessionID: new("s")})`, got: "Started thinking session 's'",
	},
	{
		name: "sdkschemas", program: goSDK + "toolschemas",
		tools: 5, call: []string{"simple greeting", "name=Ada"}, says: "Hi Ada", errors: 5,
		use: `c.SimpleGreeting(ctx, sdkschemas.SimpleGreetingInput{Name: "Ada"})`, got: "Greeting:Hi Ada",
	},
	{
		name: "sdkeverything", program: goSDK + "everything",
		tools: 10, call: []string{"greet", "name=Ada"}, says: "Hi Ada", read: "embedded:info", reads: "This is the hello example server.", errors: 11,
		use: `c.GreetStructured(ctx, sdkeverything.GreetStructuredInput{Name: "Ada"})`, got: "Message:Hi Ada",
	},
	{
		name: "gotyped", program: mcpGo + "typed_tools",
		tools: 1, call: []string{"greeting", "name=Ada", "age=36"}, says: "Hello, Ada! You are 36 years old.",
		use: `c.Greeting(ctx, gotyped.GreetingInput{Name: "Ada", Metadata: &gotyped.GreetingInputMetadata{Location: new("London")}})`, got: "London",
	},
	{
		name: "gostructured", program: mcpGo + "structured_input_and_output",
		tools: 4, call: []string{"get_user_profile", "userId=7"}, says: `"id":"7"`,
		use: `c.GetWeather(ctx, gostructured.GetWeatherInput{Location: "Rome"})`, got: "Location:Rome",
	},
	{
		name: "goeverything", program: mcpGo + "everything",
		tools: 6, call: []string{"echo", "message=hi"}, says: "hi", read: "test://static/resource/1", reads: "Text content for resource 1",
		use: `c.ComplexPrompt(ctx, goeverything.ComplexPromptInput{Temperature: "0.5"})`, got: "description",
	},
}
