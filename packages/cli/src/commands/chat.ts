import { createInterface } from "node:readline";
import type { ChatMessage, Tokenizer } from "@tinker-ts/hub";
import type { SamplingClient, SamplingParamsInput } from "tinker-ts";
import { defineCommand, type CommandContext } from "../command.js";
import { chatPrompt, hasTemplate, stopTokens } from "../connect/chat-prompt.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { errorText } from "../output/describe-error.js";
import { samplingOptions, samplingParams } from "../parse/sampling-options.js";
import { nameOf, readSource, sourceOptions } from "../parse/source-options.js";
import { styleFor } from "../terminal/style.js";

/** `chat` */
export const command = defineCommand({
  summary: "Talks to a base model or a checkpoint; the conversation is kept until /reset.",
  details: [
    "/reset starts anew, /exit or the end of the input leaves. Ctrl-C leaves too.",
    "A model without a chat template just continues the text of the conversation.",
  ],
  options: {
    ...sourceOptions,
    system: { type: "string", description: "A message that stands before the conversation" },
    ...samplingOptions,
    maxTokens: { ...samplingOptions.maxTokens, default: 512 },
    temperature: { ...samplingOptions.temperature, default: 0.7 },
  },
  arguments: {},
  examples: [
    "chat --model tinker-ts/sprout --base-url local:",
    "chat --model tinker://RUN_ID/sampler_weights/NAME",
  ],
  async run(context, { options }) {
    const source = readSource(options);
    const { output } = context;
    await withService(context, async (open) => {
      const sampling = await open.service.createSamplingClient({ ...source, ...open.bounds });
      const tokenizer = await sampling.getTokenizer(open.bounds);
      output.note(
        hasTemplate(tokenizer)
          ? `Talking to ${nameOf(source)}. /reset starts anew, /exit leaves.`
          : "This model has no chat template, so it continues the text. /reset, /exit.",
      );
      const opening: ChatMessage[] =
        options.system === undefined ? [] : [{ role: "system", content: options.system }];
      const params = samplingParams(options, stopTokens(tokenizer));
      const talk = { context, open, sampling, tokenizer, params };
      let messages = opening;
      for await (const line of userLines(context)) {
        if (line === "/exit" || line === "/quit") break;
        if (line === "/reset") {
          messages = opening;
          output.note("The conversation starts anew.");
        } else {
          messages = await takeTurn(talk, messages, line);
        }
      }
    });
  },
});

interface Talk {
  readonly context: CommandContext;
  readonly open: OpenService;
  readonly sampling: SamplingClient;
  readonly tokenizer: Tokenizer;
  readonly params: SamplingParamsInput;
}

/** Answers what the user said; the conversation goes on without a turn that failed. */
async function takeTurn(
  { context, open, sampling, tokenizer, params }: Talk,
  messages: ChatMessage[],
  line: string,
): Promise<ChatMessage[]> {
  const { terminal, signal } = context;
  const asked: ChatMessage[] = [...messages, { role: "user", content: line }];
  let answer = "";
  const say = (text: string): void => {
    answer += text;
    terminal.out(text);
  };
  try {
    const prompt = await chatPrompt(tokenizer, asked);
    const stream = sampling.stream({ prompt, samplingParams: params, tokenizer, ...open.bounds });
    for await (const { text } of stream) say(text ?? "");
  } catch (error) {
    signal.throwIfAborted();
    if (answer !== "") terminal.out("\n");
    terminal.err(errorText(error, styleFor(terminal, "err")));
    return messages;
  }
  terminal.out("\n");
  return [...asked, { role: "assistant", content: answer }];
}

/** What the user types, line by line; with a prompt only where somebody types. */
async function* userLines({ terminal, signal }: CommandContext): AsyncGenerator<string> {
  const style = styleFor(terminal, "err");
  const ask = (): void => {
    if (terminal.isInteractive.input) terminal.err(style.bold("> "));
  };
  const lines = createInterface({ input: terminal.input, signal });
  try {
    ask();
    for await (const line of lines) {
      if (line.trim() !== "") yield line.trim();
      ask();
    }
  } finally {
    // Whoever goes on reading keeps the process alive.
    lines.close();
  }
  signal.throwIfAborted();
}
