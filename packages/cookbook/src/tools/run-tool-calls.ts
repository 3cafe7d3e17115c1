import { untilAborted } from "../evaluation/index.js";
import { ArgumentError } from "tinker-ts";
import type { Message, ToolCall } from "../renderers/index.js";
import { ToolInputError, type Tool } from "./tool.js";

/** How calls are carried out. */
export interface ToolLimits {
  /** Milliseconds that a call may take; more is a result that says so. @default 30000 */
  readonly timeoutMs?: number | undefined;
  /** Characters of a result; longer results are cut, with a note to the model. @default 16384 */
  readonly maxResultLength?: number | undefined;
  /** Whether calls run one after the other; results come in the order of the calls either way. @default false */
  readonly isSequential?: boolean | undefined;
}

/** Why a call has no result of its tool. */
export type ToolFailure =
  | "json_decode_failed"
  | "tool_not_found"
  | "validation_failed"
  | "execution_failed"
  | "timed_out";

/** What became of a call. */
export interface ToolOutcome {
  /** The call. */
  readonly call: ToolCall;
  /** What the model reads. */
  readonly message: Message;
  /** Whether the tool ended the episode. */
  readonly stops: boolean;
  /** Why there is no result; the message says more. */
  readonly failure?: ToolFailure | undefined;
  /** Numbers that the tool reported. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Carries out the calls of a message. Whatever goes wrong is a result that the model can read and mend: text that is no
 * JSON, a tool that does not exist, wrong arguments, a tool that throws or takes too long. Only an abort rejects.
 */
export async function runToolCalls(
  calls: readonly ToolCall[],
  tools: readonly Tool[],
  options: ToolLimits & { readonly signal?: AbortSignal | undefined } = {},
): Promise<ToolOutcome[]> {
  const byName = toolsByName(tools);
  const run = (call: ToolCall): Promise<ToolOutcome> => runCall(call, byName, options);
  if (!options.isSequential) return Promise.all(calls.map(run));
  const outcomes: ToolOutcome[] = [];
  for (const call of calls) outcomes.push(await run(call));
  return outcomes;
}

/** Tools by their names, which must be unique. */
export function toolsByName(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    const { name } = tool.spec;
    if (byName.has(name)) throw new ArgumentError("tools", `there are two of the name ${name}`);
    byName.set(name, tool);
  }
  return byName;
}

/** What calls and their tools reported: counts, failures by kind, and means of the tools' own numbers. */
export function toolMetrics(outcomes: readonly ToolOutcome[]): Record<string, number> {
  const metrics: Record<string, number> = { tool_calls: outcomes.length, tool_errors: 0 };
  const own = new Map<string, number[]>();
  for (const { failure, metrics: reported } of outcomes) {
    if (failure) {
      metrics["tool_errors"]!++;
      metrics[`tool_errors/${failure}`] = (metrics[`tool_errors/${failure}`] ?? 0) + 1;
    }
    for (const [name, value] of Object.entries(reported)) {
      own.set(name, [...(own.get(name) ?? []), value]);
    }
  }
  for (const [name, values] of own) {
    metrics[name] = values.reduce((sum, value) => sum + value, 0) / values.length;
  }
  return metrics;
}

async function runCall(
  call: ToolCall,
  tools: ReadonlyMap<string, Tool>,
  options: ToolLimits & { readonly signal?: AbortSignal | undefined },
): Promise<ToolOutcome> {
  options.signal?.throwIfAborted();
  const { name } = call.function;
  const failed = (failure: ToolFailure, error: string): ToolOutcome => {
    const content = cut(JSON.stringify({ error }), options);
    return { call, failure, stops: false, metrics: {}, message: resultOf(call, content) };
  };
  const tool = tools.get(name);
  if (!tool) {
    const known = [...tools.keys()].join(", ");
    return failed(
      "tool_not_found",
      `There is no tool ${JSON.stringify(name)}. There are: ${known}.`,
    );
  }
  const args = readArguments(call);
  if (typeof args === "string") return failed("json_decode_failed", args);
  const timeoutMs = tool.timeoutMs ?? options.timeoutMs ?? 30_000;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  try {
    const reply = await untilAborted(signal, tool.call(args, { signal, callId: call.id }));
    const { content, stops, metrics } = reply;
    return { call, stops, metrics, message: resultOf(call, cut(content, options)) };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (timeout.aborted) return failed("timed_out", `${name} took more than ${timeoutMs} ms.`);
    const text = error instanceof Error ? error.message : String(error);
    return failed(error instanceof ToolInputError ? "validation_failed" : "execution_failed", text);
  }
}

/** The arguments, or what is wrong with their text. */
function readArguments({
  function: { arguments: text },
}: ToolCall): Record<string, unknown> | string {
  let value: unknown;
  try {
    value = JSON.parse(text.trim() === "" ? "{}" : text);
  } catch (error) {
    return `The arguments are not JSON: ${(error as Error).message}`;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  return "The arguments must be a JSON object.";
}

function resultOf(call: ToolCall, content: string): Message {
  return {
    role: "tool",
    content,
    name: call.function.name,
    ...(call.id === null ? {} : { toolCallId: call.id }),
  };
}

function cut(text: string, { maxResultLength = 16_384 }: ToolLimits): string {
  if (text.length <= maxResultLength) return text;
  return `${text.slice(0, maxResultLength)}… (the first ${maxResultLength} of ${text.length} characters)`;
}
