// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mistakes_test

import (
	"reflect"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/openapi"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/toolsearch"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/debug"
	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// exportedTypes lists the types of which programs can create a zero value.
var exportedTypes = []reflect.Type{
	of[apps.CSP](), of[apps.Document](), of[apps.Options](), of[apps.PageError](), of[apps.PageMeta](), of[apps.Permissions](),
	of[apps.ToolMeta](), of[apps.Visibility](), of[apps.VisibilityError](),
	of[config.File](), of[config.Input](), of[config.Location](), of[config.OAuth](), of[config.Options](), of[config.Server](),
	of[host.Host](), of[host.ModelContext](), of[host.Options](), of[oauth.SharedStore](),
	of[middleware.SharedBucket](), of[middleware.SharedBucketOptions](),
	of[auth.DPoPOptions](), of[auth.DPoP](), of[auth.Error](), of[auth.IntrospectionOptions](), of[auth.Introspection](),
	of[auth.JWTOptions](), of[auth.JWT](), of[auth.KeyHash](), of[auth.KeyOptions](), of[auth.Metadata](), of[auth.Options](),
	of[auth.VerifierFunc](), of[authserver.ConsentPage](), of[authserver.Options](), of[authserver.Provider](), of[authserver.Server](),
	of[debug.Options](),
	of[authtest.Claims](), of[authtest.Issuer](), of[authtest.ProofKey](),
	of[jsonschema.Finding](), of[jsonschema.Options](), of[jsonschema.Problem](), of[jsonschema.Profile](), of[jsonschema.Rule](),
	of[jsonschema.Schema](), of[jsonschema.ValidationError](),
	of[mcp.AcknowledgedParams](), of[mcp.Annotations](), of[mcp.ArgumentsError](), of[mcp.AudioContent](), of[mcp.Cacheable](),
	of[mcptrace.CacheInfo](), of[mcp.CallToolParams](), of[mcp.CallToolResult](), of[mcp.CancelError](), of[mcp.CancelledParams](), of[mcp.Change](),
	of[mcp.ClientCapabilities](), of[mcptrace.ChallengeInfo](), of[mcptrace.ProbeInfo](), of[mcp.ClientOptions](), of[mcptrace.ClientTrace](), of[mcp.Client](), of[mcp.CompleteArgument](),
	of[mcp.CompleteContext](), of[mcp.CompleteParams](), of[mcp.CompleteRef](), of[mcp.CompleteResult](), of[mcp.Completer](),
	of[mcp.Completion](), of[mcp.Conn](), of[mcp.Contents](), of[mcp.CreateMessageParams](), of[mcp.CreateMessageResult](),
	of[mcp.DiscoverResult](), of[mcp.ElicitParams](), of[mcp.ElicitResult](), of[mcp.ElicitationCapability](),
	of[mcp.EmbeddedResource](), of[mcp.EmptyResult](), of[mcptrace.EraInfo](), of[mcp.Error](), of[mcp.Extensions](), of[mcp.Extra](),
	of[mcp.FileServerOptions](), of[mcp.GetPromptParams](), of[mcp.GetPromptResult](), of[mcp.HandlerFunc](), of[mcp.Icon](),
	of[mcp.ImageContent](), of[mcp.Implementation](), of[mcp.InputRequest](), of[mcp.InputRequiredError](), of[mcp.InputRequired](),
	of[mcp.ListCapability](), of[mcp.ListParams](), of[mcp.ListPromptsResult](), of[mcp.ListResourceTemplatesResult](),
	of[mcp.ListResourcesResult](), of[mcp.ListRootsResult](), of[mcp.ListToolsResult](), of[mcp.ListenParams](),
	of[mcp.ListenResult](), of[mcp.LoggingLevel](), of[mcp.LoggingMessageParams](), of[mcp.Meta](), of[mcp.Middleware](),
	of[mcp.ModelHint](), of[mcp.ModelPreferences](), of[mcp.MuxOptions](), of[mcp.Mux](), of[mcp.OutputError](), of[mcp.Page](),
	of[mcp.Principal](), of[mcp.PrivateError](), of[mcp.ProgressParams](), of[mcp.PromptArgument](), of[mcp.PromptMessage](),
	of[mcp.Prompt](), of[mcp.ReadResourceParams](), of[mcptrace.QuestionInfo](), of[mcp.ReadResourceResult](), of[mcptrace.ReconnectInfo](), of[mcp.UpstreamOptions](), of[mcp.Request](),
	of[mcp.Output[none]](), of[mcp.ClientExtension](), of[mcp.ResourceContents](), of[mcp.ResourceLink](), of[mcp.ResourceTemplate](), of[mcp.ResourceUpdatedParams](),
	of[mcp.Resource](), of[mcp.ResourcesCapability](), of[mcp.ResultBase](), of[mcptrace.RetryInfo](), of[mcp.Resume](), of[mcptrace.RoundInfo](), of[mcptrace.WireInfo](), of[mcp.Role](), of[mcp.Root](),
	of[mcp.RootsCapability](), of[mcp.SamplingCapability](), of[mcp.SamplingContent](), of[mcp.SamplingMessage](),
	of[mcp.Arg](), of[mcp.Shape](), of[mcp.ScopeError](), of[mcp.ServerCapabilities](), of[mcp.Session](), of[mcp.SubscriptionFilter](), of[mcp.Subscription](),
	of[mcp.TextContent](), of[mcp.TimeoutError](), of[mcp.ToolAnnotations](), of[mcp.ToolChoice](), of[mcp.ToolError](),
	of[mcp.ToolResultContent](), of[mcp.ToolUseContent](), of[mcp.Tool](), of[mcp.UnknownContent](), of[mcp.UpstreamState](),
	of[mcp.Upstream](),
	of[mcphttp.Handler](), of[mcphttp.Options](), of[mcphttp.RouterOptions](), of[mcphttp.Router](), of[mcphttp.SSEHandler](),
	of[mcphttp.SessionOptions](), of[mcphttp.SharedSessions](), of[mcphttp.StatusError](), of[mcphttp.TransportOptions](),
	of[mcpstdio.CommandOptions](), of[mcpstdio.ExitError](), of[mcpstdio.LineOptions](), of[mcpstdio.ListenerOptions](),
	of[mcpstdio.Options](), of[mcpstdio.StreamOptions](),
	of[mcptest.Client](), of[mcptest.Fault](), of[mcptest.Notification](), of[mcptest.Path](), of[mcptest.Recorder](),
	of[middleware.AuditOptions](), of[middleware.AuditRecord](), of[middleware.CacheOptions](), of[middleware.Cache](),
	of[middleware.KeyFunc](), of[mcp.Kind](), of[middleware.Label](), of[middleware.MetricsOptions](),
	of[middleware.RequestIDOptions](), of[middleware.RetryOptions](), of[middleware.TokenBucketOptions](),
	of[middleware.TokenBucket](),
	of[oauth.AuthorizationCode](), of[oauth.AuthorizationServer](), of[oauth.ClientCredentials](), of[oauth.Client](),
	of[oauth.EnterpriseGrant](), of[oauth.Error](), of[oauth.FileStore](), of[oauth.IdentityProvider](), of[oauth.Key](),
	of[oauth.Loopback](), of[oauth.MemoryStore](), of[oauth.Options](), of[oauth.Registration](), of[oauth.StoreKey](),
	of[oauth.SubjectToken](), of[oauth.Transport](), of[oauth.WorkloadIdentity](),
	of[openapi.API](), of[openapi.Omission](), of[openapi.Operation](), of[openapi.Options](),
	of[recording.CompareOptions](), of[recording.DifferenceError](), of[recording.Direction](), of[recording.Entry](), of[recording.Era](),
	of[recording.FailureKind](), of[recording.Failure](), of[recording.RecorderOptions](),
	of[recording.Recorder](), of[recording.Recording](), of[recording.Redaction](), of[recording.ReplayOptions](), of[recording.Replay](),
	of[skills.Catalog](), of[skills.File](), of[skills.Frontmatter](), of[skills.GetParams](), of[skills.GetResult](),
	of[skills.ListResult](), of[skills.LoadOptions](), of[skills.Loaded](), of[skills.Options](),
	of[skills.ReadDirectoryParams](), of[skills.ReadDirectoryResult](), of[skills.Skill](), of[skills.VerificationError](),
	of[store.MemoryOptions](), of[store.Memory](),
	of[tasks.BackgroundOptions](), of[tasks.CreateResult](), of[tasks.DetailedTask](), of[tasks.CancelParams](), of[tasks.GetParams](), of[tasks.GetResult](),
	of[tasks.Handle](), of[tasks.Manager](), of[tasks.NotificationParams](), of[tasks.Options](), of[tasks.Status](),
	of[tasks.Task](), of[tasks.UpdateParams](),
	of[toolsearch.Options](), of[toolsearch.Ranker](),
	of[transport.Error](), of[transport.HeaderParam](), of[transport.ID](), of[transport.Info](), of[transport.MessageError](), of[transport.Message](),
	of[transport.Outgoing](), of[transport.Receiver](),
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

// exportedFuncs lists the functions that every program can call. TestZeroValuesAreComplete
// reports missing ones.
var exportedFuncs = []any{
	auth.APIKeys, auth.Bearer, auth.FirstOf, auth.HashKey, auth.HashedAPIKeys, auth.NewInvalidTokenError, auth.LookupAPIKeys,
	auth.MetadataHandler, auth.MetadataPath, auth.MetadataURL, auth.MutualTLS, auth.NewDPoP, auth.NewIntrospection, auth.NewJWT,
	auth.ParseKeyHash, auth.Require,
	debug.Handler, debug.NewHandler,
	authtest.NewIssuer, authtest.NewProofKey,
	jsonschema.CheckType, jsonschema.Compile, jsonschema.ForType, jsonschema.For[none], jsonschema.ForInput[none], jsonschema.Lint, jsonschema.Marshal,
	jsonschema.Unmarshal,
	mcp.Ask, mcp.AssistantMessage, mcp.CacheFor, mcp.Call[none], mcp.Chain, mcp.ClientLogger, mcptrace.ClientTraceFromContext, mcp.CodeOf, mcp.CompleteFrom,
	mcp.AcceptElicit, mcp.DeclineElicit, mcp.DescriptionOf, mcp.WithDescription, mcp.ElicitQuestion[none], mcp.ElicitSchemaQuestion, mcp.ElicitURL, mcp.ElicitURLQuestion, mcp.Elicit[none],
	mcp.AppendResponse, mcp.CodeName, mcp.Do[none], mcp.MarshalResult, mcp.ParseRequest, mcp.ResultMeta, mcp.ServeRequest, mcp.UnmarshalResult, mcp.WithResultMeta,
	mcp.ErrorResult, mcp.Errorf, mcp.ExpandURI, mcp.FileServerFS, mcp.FileServerRoot, mcp.InProcess, mcp.IntID, mcp.IsMethod, mcp.LegacyVersions,
	mcp.ModernVersions, mcp.NewClient, mcp.NewInsufficientScopeError, mcp.NewMethodNotFoundError,
	mcp.NewMux, mcp.NewRateLimitedError, mcp.NewRequest, mcp.NewResourceNotFoundError, mcp.NewUnknownNameError,
	mcp.Once[none], mcp.PrincipalFromContext, mcp.Progress, mcp.PromptFunc[none, none], mcp.RequestFromContext,
	mcp.Reshape, mcp.ResourceFunc[none, none], mcp.RetryAfter, mcp.Roots, mcp.RootsQuestion, mcp.Sample, mcp.SampleQuestion,
	mcp.Heartbeat, mcp.SessionFromContext, mcp.StringID, mcp.Text, mcp.TextResult, mcp.ToolFunc[none, none], mcp.UserMessage, mcp.WithContent[none], mcptrace.WithClientTrace, mcp.WithLog, mcp.WithProgress,
	mcphttp.CORS, mcphttp.CloseStream, mcphttp.NewHandler, mcphttp.NewRouter, mcphttp.NewSSEHandler, mcphttp.NewSSETransport,
	mcphttp.NewTransport, mcphttp.PrincipalOf, mcphttp.RequestFromContext, mcphttp.WithChallenge, mcphttp.WithPrincipal,
	config.Load, config.Locations, config.Parse, config.Redact,
	mcpstdio.Environ, mcpstdio.NewCommand, mcpstdio.NewSocket, mcpstdio.NewStream, mcpstdio.Serve, mcpstdio.ServeListener,
	mcpstdio.ServeStream,
	mcptest.Accept, mcptest.As, mcptest.Check, mcptest.Connect, mcptest.Dial, mcptest.Do, mcptest.Faulty, mcptest.NewRequest,
	mcptest.Golden, mcptest.NoLeaks, mcptest.Paths, mcptest.Record, mcptest.Replay, mcptest.Serve, mcptest.ServeFunc,
	middleware.Allow, middleware.Audit, middleware.AuditLog, middleware.ByAddress, middleware.ByAll, middleware.ByPrincipal,
	middleware.ByTool, middleware.Concurrency, middleware.Deny, middleware.Heartbeat, middleware.Logger, middleware.MaxResult, middleware.Metrics,
	middleware.NewCache, middleware.NewTokenBucket, middleware.RateLimit, middleware.PromptsAsTools, middleware.Recover, middleware.Reshape,
	middleware.ReshapeFunc, middleware.RequestID, middleware.RequestIDFrom, middleware.ResourcesAsTools, middleware.RequireScopes,
	middleware.RequireScopesFunc, middleware.Retry, middleware.Singleflight, middleware.Timeout, middleware.Visible,
	authserver.Auth0, authserver.Cognito, authserver.Entra, authserver.GitHub, authserver.Google, authserver.Keycloak, authserver.New, authserver.OIDC, authserver.Okta, authserver.TokenFromContext,
	openapi.New, openapi.Route[none, none], toolsearch.BM25, toolsearch.New,
	oauth.NewFileStore, oauth.NewMemoryStore, oauth.NewRedirector, oauth.NewTransport, oauth.OpenBrowser,
	storetest.Tests,
	recording.Compare, recording.NewRecorder, recording.NewReplay, recording.Read,
	skills.New, skills.Get, skills.List, skills.Load, skills.ParseFrontmatter, skills.ReadDirectory,
	apps.AsApp, apps.Check, apps.Client, apps.FlatKey, apps.HideAppTools, apps.MetaOf, apps.Page, apps.Read, apps.Template, apps.Tool,
	host.New, host.Sandbox, oauth.NewSharedStore, middleware.NewSharedBucket,
	store.CheckKey, store.NewMemory, store.Update, storetest.Tests,
	tasks.Attach, tasks.Client, tasks.New, tasks.Start,
	transport.AppendCancelled, transport.AppendError, transport.AppendHead, transport.AppendNotification, transport.AppendRequest,
	transport.AppendResult, transport.DecodeHeaderValue, transport.EncodeHeaderValue, transport.FromStream, transport.IntID,
	transport.IsBatch, transport.Messages, transport.NewConn, transport.ParseID, transport.ParseMessage, transport.Pipe,
	transport.SplitBatch, transport.StringID, transport.Unreadable, transport.UnreadableMessage, transport.WithLogging,
}
