import { pythonStrip } from "@tinker-ts/hub";
import type { ChatFormat, MessagePlace } from "../chat-format.js";
import { declarationMarkup, declaringMessage, trimMarkup, withMarkup } from "../declared-tools.js";
import { qwenImage } from "../images.js";
import { writeJson } from "../json-text.js";
import { hasThinking, textOf, type Message, type ToolSpec } from "../message.js";
import type { RendererOptions } from "../registry.js";
import { RendererError } from "../renderer-error.js";
import { insertSystem } from "./insert-system.js";
import { chatMl, m, type ChatMlFamily } from "./chat-ml.js";
import { jsonCall, xmlCall } from "./tool-markup.js";

const emptyBlock = "<think>\n\n</think>\n\n";

/** Reasoning after the last question belongs to the current answer. */
const isCurrent = (place: MessagePlace) =>
  place.isLast || (place.lastUserIndex >= 0 && place.index > place.lastUserIndex);

const jsonTools = {
  call: jsonCall,
  beforeCalls: (_: Message, hasText: boolean) => (hasText ? "\n" : ""),
  afterCall: ["\n", ""],
  result: ["\n</tool_response>", "\n"],
  arguments: "text",
} as const;

/** Qwen3: the answer is framed by a think block, which is dropped in earlier turns. */
export function qwen3(name: string, options: RendererOptions, mode: "think" | "off"): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  const isFramed = (place: MessagePlace, message: Message) =>
    place.lastUserIndex >= 0 &&
    (place.isLast || !strips || (isCurrent(place) && hasThinking(message)));
  return chatMl({
    ...jsonTools,
    name,
    extension: strips ? "never" : "always",
    disablesThinking: mode === "off",
    prompt: mode === "off" ? emptyBlock : "",
    keepsThinking: (place) => !strips || isCurrent(place),
    block: (place, message) =>
      message.role === "assistant" && isFramed(place, message)
        ? { open: "<think>\n", close: "\n</think>\n\n", strips: "lines", joinsText: true }
        : { open: "<think>", close: "</think>" },
    emptyBlock: (message, place) =>
      isFramed(place, message) && !hasThinking(message) ? emptyBlock : "",
    emptyBlockIn: "output",
    endsApart: true,
    check: (message, place) => {
      if (mode !== "off" || message.role !== "assistant" || !place.isLast) return;
      if (place.lastUserIndex >= 0 || message.content.length === 0) return;
      throw new RendererError(
        `The prompt of "${name}" always has a think block, but Qwen3 writes none where no user has said ` +
          'anything. Add a message of the user, or take "qwen3".',
      );
    },
    declareTools: declareJsonTools,
    answers: { frame: "lines", beforeCalls: "\n", calls: "json" },
  });
}

/** Qwen3 models without a think block, and the vision models, which write it without newlines. */
export function qwen3Plain(
  name: string,
  options: RendererOptions,
  kind: "instruct" | "vl" | "vl_instruct",
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  const sees = kind !== "instruct";
  return chatMl({
    ...jsonTools,
    name,
    extension: kind === "instruct" || !strips ? "always" : "never",
    disablesThinking: false,
    prompt: "",
    keepsThinking: (place) => !strips || isCurrent(place),
    block: () => ({ open: "<think>", close: "</think>" }),
    emptyBlock: () => "",
    emptyBlockIn: "output",
    endsApart: !sees,
    ...(sees ? { image: qwenImage } : {}),
    declareTools: declareJsonTools,
    answers: { frame: kind === "vl" ? "lines" : "none", beforeCalls: "\n", calls: "json" },
  });
}

/** Qwen3.5 and Qwen3.6: prompts open the think block. */
export function qwen35(name: string, options: RendererOptions, mode: "think" | "off"): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  return chatMl({
    ...xmlFamily(name, mode, options.model?.startsWith("Qwen/Qwen3.6") ? "json" : "python"),
    extension: strips ? "never" : "sometimes",
    keepsThinking: (place) => !strips || isCurrent(place),
    emptyBlock: (message, place) =>
      place.index > place.lastUserIndex && !hasThinking(message) ? emptyBlock : "",
  });
}

/** The reasoning efforts of Qwen3.8. */
const efforts = {
  xhigh:
    "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider plausible alternatives, and prioritize correctness, consistency, and clarity in the final answer.",
  medium: "",
  low: "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly to the conclusion without unnecessary elaboration.",
  off: "",
} as const;

/** Qwen3.8: all turns keep their reasoning, and the system message sets the effort. */
export function qwen38(
  name: string,
  options: RendererOptions,
  effort: keyof typeof efforts,
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? false;
  const isPast = (place: MessagePlace) => strips && place.index <= place.lastUserIndex;
  return chatMl({
    ...xmlFamily(name, effort === "off" ? "off" : "think", "json"),
    // A turn without reasoning is sampled in two tokens where history has one.
    extension: "never",
    keepsThinking: (place) => !isPast(place),
    emptyBlock: (message, place) => (isPast(place) || hasThinking(message) ? "" : emptyBlock),
    prepare: (messages) => withInstruction(messages, efforts[effort]),
  });
}

function xmlFamily(
  name: string,
  mode: "think" | "off",
  scalars: "python" | "json",
): Omit<ChatMlFamily, "extension" | "keepsThinking" | "emptyBlock"> {
  return {
    name,
    disablesThinking: mode === "off",
    prompt: mode === "off" ? emptyBlock : "<think>\n",
    block: () => ({ open: "<think>\n", close: "\n</think>\n\n", strips: "blanks" }),
    emptyBlockIn: "header",
    trims: true,
    image: qwenImage,
    call: (call) => xmlCall(call, scalars),
    beforeCalls: (message) => (hasVisible(message) ? "\n\n" : ""),
    afterCall: ["\n", ""],
    result: ["\n</tool_response>", "\n"],
    declareTools: declareXmlTools,
    answers: { frame: "trim", afterThinking: "\n\n", beforeCalls: "\n\n", calls: "xml" },
    arguments: "object",
  };
}

function hasVisible(message: Message): boolean {
  return (
    pythonStrip(textOf(message)) !== "" ||
    (typeof message.content !== "string" && message.content.some(({ type }) => type === "image"))
  );
}

/** Puts the instruction in front of the system message; idempotent. */
function withInstruction(messages: readonly Message[], instruction: string): readonly Message[] {
  const [first, ...rest] = messages;
  if (first?.role !== "system") {
    return instruction === "" ? messages : insertSystem(messages, instruction);
  }
  if (typeof first.content !== "string" && first.content.some(({ type }) => type !== "text")) {
    const [part] = first.content;
    const isThere = part?.type === "text" && part.text.startsWith(instruction);
    if (isThere) return messages;
    const text = { type: "text", text: `${instruction}\n\n` } as const;
    return [{ ...first, content: [text, ...first.content] }, ...rest];
  }
  const content = pythonStrip(textOf(first));
  if (content === "" && instruction === "") return rest;
  const markup = declarationMarkup(first);
  const isThere =
    instruction === "" || content === instruction || content.startsWith(`${instruction}\n\n`);
  if (markup) {
    const trimmed = trimMarkup(markup);
    return [withMarkup(first, isThere ? trimmed : [`${instruction}\n\n`, ...trimmed]), ...rest];
  }
  const whole = isThere
    ? content
    : [instruction, content].filter((text) => text !== "").join("\n\n");
  return [{ ...first, content: whole }, ...rest];
}

function declareJsonTools(tools: readonly ToolSpec[], systemPrompt: string): Message[] {
  if (tools.length === 0) return [{ role: "system", content: systemPrompt }];
  const lines = tools.map((tool) => writeJson({ type: "function", function: tool })).join("\n");
  const before = systemPrompt === "" ? "" : `${systemPrompt}\n\n`;
  return [
    declaringMessage(m`${before}# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
${lines}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>`),
  ];
}

function declareXmlTools(tools: readonly ToolSpec[], systemPrompt: string): Message[] {
  if (tools.length === 0) return [{ role: "system", content: systemPrompt }];
  const lines = tools.map((tool) => writeJson(tool)).join("\n");
  const after = systemPrompt === "" ? "" : `\n\n${systemPrompt}`;
  return [declaringMessage(m`${xmlDeclaration(lines)}${after}`)];
}

/** The declaration that Qwen3.5 and Nemotron share, around their own notation of functions. */
export function xmlDeclaration(functions: string): ReturnType<typeof m> {
  return m`# Tools

You have access to the following functions:

<tools>
${functions}
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>`;
}
