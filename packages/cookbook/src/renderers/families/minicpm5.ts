import { argumentsOf } from "../check-messages.js";
import type { ChatFormat, MessagePlace } from "../chat-format.js";
import { declaringMessage } from "../declared-tools.js";
import { pythonText, writeJson, type JsonValue } from "../json-text.js";
import {
  hasThinking,
  type ContentPart,
  type Message,
  type ToolCall,
  type ToolSpec,
} from "../message.js";
import { callFields, type ReadCall } from "../parsing/tool-calls.js";
import type { RendererOptions } from "../registry.js";
import { chatMl, m } from "./chat-ml.js";

const emptyBlock = "<think>\n\n</think>\n\n";

/** The prompt's part of reasoning: nothing, so that the model chooses; its beginning; or an empty block. */
const prompts = { free: "", think: "<think>\n", off: emptyBlock } as const;

/** MiniCPM5: reasoning is written after the last question only; calls are tags with attributes. */
export function minicpm5(
  name: string,
  options: RendererOptions,
  mode: keyof typeof prompts,
): ChatFormat {
  const strips = options.stripThinkingFromHistory ?? true;
  const prompt = prompts[mode];
  const isCurrent = (place: MessagePlace): boolean =>
    place.lastUserIndex >= 0 && place.index > place.lastUserIndex;
  const format = chatMl({
    name,
    extension: strips ? "never" : "sometimes",
    disablesThinking: mode === "off",
    prompt,
    keepsThinking: (place) => !strips || isCurrent(place),
    block: () => ({
      open: "<think>\n",
      close: "\n</think>\n\n",
      strips: "lines",
      joinsText: true,
    }),
    // The current turn begins like its prompt ends.
    emptyBlock: (message, place) =>
      place.isLast && prompt !== "" && !hasThinking(message) ? emptyBlock : "",
    emptyBlockIn: "header",
    call: (call) => [functionTag(call)],
    beforeCalls: (_, hasText) => (hasText ? "\n" : ""),
    afterCall: ["\n", ""],
    result: ["\n</tool_response>", "\n"],
    declareTools,
    answers: { frame: "lines", beforeCalls: "\n", calls: "json" },
    arguments: "object",
  });
  const { read } = format.reader;
  return {
    ...format,
    begin: "bos",
    reader: { ...format.reader, read: (text, signs) => withCalls(read(text, signs)) },
  };
}

function functionTag(call: ToolCall): string {
  const parameters = [...argumentsOf(call)].map(
    ([key, value]) => `<param name="${key}">${valueText(value)}</param>`,
  );
  return `<function name="${call.function.name}">${parameters.join("")}</function>`;
}

function valueText(value: JsonValue): string {
  if (typeof value !== "string") return pythonText(value);
  return /[<&\n]/.test(value) ? `<![CDATA[${value}]]>` : value;
}

const functionPattern = /\n?<function name="([^"\n]+)">(.*?)(<\/function>|$)/gs;

/** The calls in the text of an answer. */
function withCalls(message: Message): Message {
  const calls: ReadCall[] = [];
  const withoutCalls = (text: string): string =>
    text.replaceAll(functionPattern, (raw, name: string, body: string, end: string) => {
      calls.push(readCall(raw, name, body, end !== ""));
      return "";
    });
  const { content } = message;
  const left =
    typeof content === "string"
      ? withoutCalls(content)
      : content.flatMap((part): ContentPart[] => {
          if (part.type !== "text") return [part];
          const text = withoutCalls(part.text);
          return text === "" ? [] : [{ ...part, text }];
        });
  return { ...message, content: left, ...callFields(calls) };
}

function readCall(raw: string, name: string, body: string, isWhole: boolean): ReadCall {
  const rawText = raw.trim();
  if (!isWhole) {
    return {
      rawText,
      error: "unterminated tool block: '<function' opened without a '</function>'",
    };
  }
  const pattern = /<param name="([^"\n]+)">(?:<!\[CDATA\[(.*?)\]\]>|(.*?))<\/param>/gs;
  const args = Object.fromEntries(
    [...body.matchAll(pattern)].map(([, key, quoted, plain]) => [key, quoted ?? readValue(plain)]),
  );
  return { id: null, function: { name, arguments: writeJson(args) } };
}

const words: Readonly<Record<string, boolean | null>> = { True: true, False: false, None: null };

/** A value as JSON if it is JSON or a keyword of Python; a text that looks like a number becomes one. */
function readValue(text = ""): unknown {
  if (Object.hasOwn(words, text)) return words[text];
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

function declareTools(tools: readonly ToolSpec[], systemPrompt: string): readonly Message[] {
  if (tools.length === 0) {
    return systemPrompt === "" ? [] : [{ role: "system", content: systemPrompt }];
  }
  const lines = tools.map((tool) => writeJson({ type: "function", function: tool })).join("\n");
  const before = systemPrompt === "" ? "" : `${systemPrompt}\n\n`;
  return [
    declaringMessage(m`${before}# Tools

You are provided with function signatures within <tools></tools> XML tags:
<tools>
${lines}
</tools>

Tool usage guidelines:
- You may call zero or more functions. If no function calls are needed, just answer normally and do not include any <function ... </function>.
- When calling a function, return an XML object within <function ... </function> using:
<function name="function-name"><param name="param-name">param-value</param></function>
- param-value may be multi-line. If it contains <, & or newline characters, wrap it in a CDATA block: <param name="param-name"><![CDATA[...multi-line value...]]></param>`),
  ];
}
