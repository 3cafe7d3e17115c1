import { pythonStrip } from "@tinker-ts/hub";
import { ArgumentError } from "tinker-ts";
import type { ChatFormat } from "../chat-format.js";
import { declaringMessage } from "../declared-tools.js";
import { pythonText, writeJson } from "../json-text.js";
import { hasThinking, textOf, type Message, type ToolSpec } from "../message.js";
import type { RendererOptions } from "../registry.js";
import { insertSystem } from "./insert-system.js";
import { chatMl, m } from "./chat-ml.js";
import { xmlDeclaration } from "./qwen.js";
import { xmlCall } from "./tool-markup.js";

/** Options of the variants of a Nemotron renderer. */
export interface NemotronVariant {
  readonly kind: "nano" | "ultra";
  /** @default "think" */
  readonly mode?: "think" | "off";
  /** Keeps the reasoning of earlier turns. @default false */
  readonly preserves?: boolean;
  /** The reasoning effort requested after the last message of the user. */
  readonly effort?: "low" | "efficient";
}

/** Nemotron 3: Qwen3.5's layout with a system message in any case and a think block in every turn. */
export function nemotron(
  name: string,
  options: RendererOptions,
  variant: NemotronVariant,
): ChatFormat {
  const { kind, mode = "think", preserves = false, effort } = variant;
  const isNano = kind === "nano";
  return chatMl({
    name,
    // A turn without reasoning is written `<think></think>` in history, which a prompt cannot lead to.
    extension: preserves ? "sometimes" : "never",
    disablesThinking: mode === "off",
    prompt: mode === "off" ? "<think></think>" : "<think>\n",
    keepsThinking: (place) => preserves || place.isLast || place.index >= place.lastUserIndex,
    block: () => ({
      open: "<think>\n",
      close: isNano ? "\n</think>\n" : "</think>",
      strips: "blanks",
    }),
    emptyBlock: (message, place) => {
      const isPast = place.index < place.lastUserIndex;
      if (!hasThinking(message)) return "<think></think>";
      if (!isPast || preserves) return "";
      const isText = textOf(message) !== "" && (message.toolCalls ?? []).length === 0;
      return isNano && isText ? "<think></think>\n" : "<think></think>";
    },
    emptyBlockIn: "header",
    ...(mode === "think" && options.reachableTurns
      ? { target: isNano ? "</think>\n" : "</think>" }
      : {}),
    trims: true,
    call: (call) => xmlCall(call, "python"),
    // The block of Nano ends with a newline of its own.
    beforeCalls: (message) =>
      isNano && hasThinking(message) && textOf(message) === "" ? "" : "\n",
    afterCall: ["\n", "\n"],
    result: ["\n</tool_response>\n", ""],
    prepare: (messages) => {
      const whole = insertSystem(messages, "");
      return effort ? withEffort(whole, name, effort) : whole;
    },
    declareTools,
    answers: {
      frame: "trim",
      ...(isNano ? { afterThinking: "\n" } : {}),
      beforeCalls: "\n",
      calls: "xml",
    },
    arguments: "object",
  });
}

function withEffort(messages: readonly Message[], name: string, effort: string): Message[] {
  const last = messages.findLastIndex(({ role }) => role === "user");
  return messages.map((message, index) => {
    if (index !== last) return message;
    if (typeof message.content !== "string") {
      throw new ArgumentError("content", `"${name}" needs a text in the last message of the user`);
    }
    // Blanks around the text are stripped before the effort is added, as for any text.
    return { ...message, content: `${message.content}\n\n{reasoning effort: ${effort}}` };
  });
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): Message[] {
  if (tools.length === 0) return [{ role: "system", content: systemPrompt }];
  const before = systemPrompt === "" ? "" : `${systemPrompt}\n\n`;
  const functions = tools.map(declareFunction).join("\n");
  return [declaringMessage(m`${before}${xmlDeclaration(functions)}`)];
}

type Fields = Readonly<Record<string, unknown>>;

function declareFunction(tool: ToolSpec): string {
  const description = pythonStrip(tool.description ?? "");
  const { parameters } = tool;
  const properties = isFields(parameters?.["properties"]) ? parameters["properties"] : {};
  return [
    "<function>",
    `<name>${tool.name}</name>`,
    ...(description === "" ? [] : [`<description>${description}</description>`]),
    "<parameters>",
    ...Object.entries(properties).flatMap(([key, field]) => declareParameter(key, field)),
    ...otherFields(parameters ?? {}, ["type", "properties", "required"]),
    ...(parameters && "required" in parameters
      ? [`<required>${writeJson(parameters["required"])}</required>`]
      : []),
    "</parameters>",
    ...otherFields(tool as unknown as Fields, ["type", "name", "description", "parameters"]),
    "</function>",
  ].join("\n");
}

function declareParameter(name: string, schema: unknown): string[] {
  const fields = isFields(schema) ? schema : {};
  return [
    "<parameter>",
    `<name>${name}</name>`,
    ...("type" in fields ? [`<type>${printed(fields["type"])}</type>`] : []),
    ...("description" in fields
      ? [`<description>${pythonStrip(pythonText(fields["description"]))}</description>`]
      : []),
    ...("enum" in fields ? [`<enum>${writeJson(fields["enum"])}</enum>`] : []),
    ...otherFields(fields, ["name", "type", "description", "enum"]),
    "</parameter>",
  ];
}

function otherFields(fields: Fields, handled: readonly string[]): string[] {
  return Object.entries(fields)
    .filter(([key]) => !handled.includes(key))
    .map(([key, value]) => `<${key}>${pythonText(value)}</${key}>`);
}

/** A list in Python's notation: `['string', 'null']`. */
function printed(value: unknown): string {
  if (!Array.isArray(value)) return pythonText(value);
  return `[${value.map((item) => (typeof item === "string" ? `'${item}'` : printed(item))).join(", ")}]`;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
