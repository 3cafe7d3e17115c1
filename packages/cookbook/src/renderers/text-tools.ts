import { textOf, type Message, type ToolCall, type ToolSpec } from "./message.js";
import { callFields, readJsonCall } from "./parsing/tool-calls.js";
import { RendererError } from "./renderer-error.js";
import type { ParsedResponse, Renderer } from "./renderer.js";

/** Options of tools in formats without support for them. */
export interface TextToolsOptions {
  /** Writes the declaration of functions for the model. @default a list of their JSON Schemas, and the form of a call */
  readonly declare?: ((tools: readonly ToolSpec[]) => string) | undefined;
}

/**
 * A renderer with tools for a format without support for them, such as the template of a small model: everything is text.
 * The declaration is in the system message, a call is `<tool_call>` with JSON in it, a result is a message of the user in
 * `<tool_response>`.
 */
export function withTextTools(renderer: Renderer, options: TextToolsOptions = {}): Renderer {
  const { declare = declareAll } = options;
  const written = (messages: readonly Message[]): Message[] => messages.map(asText);
  return {
    name: renderer.name,
    tokenizer: renderer.tokenizer,
    hasExtensionProperty: renderer.hasExtensionProperty,
    disablesThinking: renderer.disablesThinking,
    // Streamed deltas are raw; calls are parsed from the whole.
    supportsStreaming: renderer.supportsStreaming,
    stopSequences: renderer.stopSequences,
    buildGenerationPrompt: (messages, prompt) =>
      renderer.buildGenerationPrompt(written(messages), prompt),
    buildSupervisedExample: (messages, what) =>
      renderer.buildSupervisedExample(written(messages), what),
    buildSupervisedExamples: (messages, what) =>
      renderer.buildSupervisedExamples(written(messages), what),
    parseResponse: (tokens, parsing) => withCalls(renderer.parseResponse(tokens, parsing)),
    streamingParser(parsing) {
      const parser = renderer.streamingParser(parsing);
      return {
        push: (tokens) => parser.push(tokens),
        finish: () => {
          const { events, ...response } = parser.finish();
          return { ...withCalls(response), events };
        },
      };
    },
    createConversationPrefixWithTools(tools, systemPrompt = "") {
      const parts = [systemPrompt, tools.length > 0 ? declare(tools) : ""];
      const content = parts.filter((part) => part !== "").join("\n\n");
      return content === "" ? [] : [{ role: "system", content }];
    },
    toOpenAIMessage: (message) => renderer.toOpenAIMessage(message),
  };
}

/** The renderer itself if its format supports tools, else one that writes them as text. */
export function rendererForTools(renderer: Renderer): Renderer {
  const probe = { name: "probe", description: "", parameters: { type: "object", properties: {} } };
  try {
    renderer.createConversationPrefixWithTools([probe]);
    return renderer;
  } catch (error) {
    if (!(error instanceof RendererError)) throw error;
    return withTextTools(renderer);
  }
}

function declareAll(tools: readonly ToolSpec[]): string {
  const list = tools.map((tool) => JSON.stringify(tool)).join("\n");
  const form = `<tool_call>\n{"name": NAME, "arguments": {…}}\n</tool_call>`;
  return `You can call these functions:\n${list}\n\nTo call one, write\n${form}`;
}

function asText(message: Message): Message {
  if (message.role === "tool") {
    return { role: "user", content: `<tool_response>\n${textOf(message)}\n</tool_response>` };
  }
  const { toolCalls, unparsedToolCalls, ...rest } = message;
  const calls = (toolCalls ?? []).map(callText);
  // Unparsed calls are part of the text, too.
  const written = [...calls, ...(unparsedToolCalls ?? []).map(({ rawText }) => rawText)];
  if (written.length === 0) return rest;
  const text = textOf(message);
  const lines = [...(text === "" ? [] : [text]), ...written];
  return { ...rest, content: lines.join("\n") };
}

function callText({ function: { name, arguments: args } }: ToolCall): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n</tool_call>`;
}

/** The calls in a text, unless the format has parsed them itself. */
function withCalls(response: ParsedResponse): ParsedResponse {
  const { message } = response;
  if (message.toolCalls || message.unparsedToolCalls) return response;
  const text = textOf(message);
  const blocks = [...text.matchAll(/\n?<tool_call>(.*?)(?:<\/tool_call>|$)/gs)];
  if (blocks.length === 0) return response;
  const calls = blocks.map(([whole, body]) => readJsonCall(body!.trim(), whole.trim()));
  const content = blocks.reduce((rest, [whole]) => rest.replace(whole, ""), text);
  return { ...response, message: { ...message, content, ...callFields(calls) } };
}
