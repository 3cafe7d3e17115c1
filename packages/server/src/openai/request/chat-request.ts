import { invalid } from "../openai-error.js";
import type { Fields } from "./fields.js";
import { readMessages, type TemplateMessage } from "./messages.js";
import { readResponseFormat, type ResponseFormat } from "./response-format.js";
import {
  readMaxTokens,
  readSampling,
  refuseUnsupported,
  type SamplingFields,
} from "./sampling-fields.js";
import { readTools, type ToolFields } from "./tools.js";

/** A request for the next message of a conversation. */
export interface ChatRequest extends SamplingFields, ToolFields {
  readonly model: string;
  readonly messages: readonly TemplateMessage[];
  /** null: as many as fit. */
  readonly maxTokens: number | null;
  readonly logprobs: boolean;
  readonly topLogprobs: number;
  readonly format: ResponseFormat;
  /** Variables of the template. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly addsGenerationPrompt: boolean;
  readonly continuesFinalMessage: boolean;
  readonly separatesReasoning: boolean;
  readonly returnsPromptText: boolean;
}

const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Reads the body of a chat completion. */
export function readChatRequest(fields: Fields): ChatRequest {
  refuseUnsupported(fields);
  const logprobs = fields.boolean("logprobs") ?? false;
  const topLogprobs = fields.integer("top_logprobs", 0, 20);
  if (topLogprobs !== undefined && !logprobs) {
    throw invalid("top_logprobs", "needs logprobs: true");
  }
  const continuesFinalMessage = fields.boolean("continue_final_message") ?? false;
  const addsGenerationPrompt = fields.boolean("add_generation_prompt") ?? !continuesFinalMessage;
  if (continuesFinalMessage && addsGenerationPrompt) {
    throw invalid("continue_final_message", "cannot be true together with add_generation_prompt");
  }
  const messages = readMessages(fields);
  if (continuesFinalMessage && messages.at(-1)?.role !== "assistant") {
    throw invalid("continue_final_message", "needs an assistant's message at the end");
  }
  return {
    ...readSampling(fields),
    ...readTools(fields),
    model: readModel(fields),
    messages,
    maxTokens: readMaxTokens(fields, ["max_completion_tokens", "max_tokens"], 1),
    logprobs,
    topLogprobs: topLogprobs ?? 0,
    format: readResponseFormat(fields),
    variables: readVariables(fields),
    addsGenerationPrompt,
    continuesFinalMessage,
    separatesReasoning: fields.boolean("separate_reasoning") ?? true,
    returnsPromptText: fields.boolean("return_prompt_text") ?? false,
  };
}

/** The name of the model, which is always needed. */
export function readModel(fields: Fields): string {
  const model = fields.string("model");
  if (model === undefined || model === "") throw invalid("model", "is missing");
  return model;
}

function readVariables(fields: Fields): Record<string, unknown> {
  const given = fields.object("chat_template_kwargs")?.json ?? {};
  for (const name of ["messages", "tools", "add_generation_prompt"]) {
    if (name in given) throw invalid(`chat_template_kwargs.${name}`, "has a field of its own");
  }
  const effort = fields.get("reasoning_effort");
  if (effort === undefined) return given;
  const isKnown =
    typeof effort === "number" ? effort >= 0 && effort <= 1 : efforts.some((one) => one === effort);
  if (!isKnown) {
    throw invalid("reasoning_effort", `must be one of ${efforts.join(", ")}, or from 0 to 1`);
  }
  const isOff = effort === "none" || effort === 0;
  return {
    reasoning_effort: effort,
    ...(isOff ? { enable_thinking: false } : {}),
    ...given,
  };
}
