export {
  connectMcp,
  mcpTools,
  type McpClient,
  type McpConnection,
  type McpServer,
  type McpToolsOptions,
} from "./mcp-tools.js";
export {
  runToolCalls,
  toolMetrics,
  type ToolFailure,
  type ToolLimits,
  type ToolOutcome,
} from "./run-tool-calls.js";
export type {
  JsonSchema,
  SchemaIssue,
  SchemaOutput,
  SchemaResult,
  StandardSchema,
} from "./standard-schema.js";
export {
  defineTool,
  ToolInputError,
  ToolReply,
  type PlainToolOptions,
  type Tool,
  type ToolContext,
  type TypedToolOptions,
} from "./tool.js";
