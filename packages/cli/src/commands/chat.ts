import { createInterface, type Interface } from "node:readline";
import path from "node:path";
import type { Tokenizer } from "@tinker-ts/hub";
import type { SamplingClient, SamplingParamsInput } from "tinker-ts";
import { Conversation } from "../chat/conversation.js";
import { runSlashCommand, slashWords } from "../chat/slash-commands.js";
import { defineCommand, type CommandContext } from "../command.js";
import { chatPrompt, hasTemplate } from "../connect/chat-prompt.js";
import { dataDirectory } from "../connect/data-directory.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { errorText } from "../output/describe-error.js";
import { samplingOptions, samplingParams } from "../parse/sampling-options.js";
import { nameOf, readSource, sourceOptions } from "../parse/source-options.js";
import { LineEditor } from "../terminal/line-editor.js";
import { LineHistory } from "../terminal/line-history.js";
import { styleFor } from "../terminal/style.js";

/** `chat` */
export const command = defineCommand({
  summary: "Talks to a base model or a checkpoint; the conversation is kept until /reset.",
  details: [
    "/help lists what else there is: /system TEXT, /reset, /save FILE, /exit.",
    "Ctrl-C stops an answer; at the prompt it ends the program, as Ctrl-D does.",
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
          ? `Talking to ${nameOf(source)}. /help lists commands, /exit leaves.`
          : "This model has no chat template, so it continues the text. /help, /exit.",
      );
      const conversation = new Conversation(options.system);
      const params = samplingParams(options, tokenizer.turnEnds);
      const talk = { context, open, sampling, tokenizer, params, conversation };
      const user = await openUser(context);
      try {
        for await (const line of user.lines) {
          if (await takeLine(talk, user, line)) break;
        }
      } finally {
        user.close();
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
  readonly conversation: Conversation;
}

/** Who types. */
interface User {
  /** Lines that say something. */
  readonly lines: AsyncIterable<string>;
  /** What Ctrl-C does until the next line is asked for. */
  onInterrupt(action: () => void): void;
  close(): void;
}

/** Does what a line asks for, and says whether it was the last; what fails does not end the conversation. */
async function takeLine(talk: Talk, user: User, line: string): Promise<boolean> {
  const { terminal, signal, output } = talk.context;
  try {
    const result = await runSlashCommand(line, talk.conversation, terminal.cwd);
    if (!result) await answer(talk, user, line);
    else if (result.text !== "") output.note(result.text);
    return result?.isEnd ?? false;
  } catch (error) {
    signal.throwIfAborted();
    terminal.err(errorText(error, styleFor(terminal, "err")));
    return false;
  }
}

/** Answers what the user said. A stopped answer counts as far as it went; one that failed does not. */
async function answer(talk: Talk, user: User, line: string): Promise<void> {
  const { context, open, sampling, tokenizer, params, conversation } = talk;
  const { terminal, output } = context;
  const stop = new AbortController();
  user.onInterrupt(() => stop.abort());
  const bounds = { ...open.bounds, signal: AbortSignal.any([open.bounds.signal, stop.signal]) };
  let said = "";
  try {
    const asked = [...conversation.messages, { role: "user", content: line }];
    const prompt = await chatPrompt(tokenizer, asked);
    const stream = sampling.stream({ prompt, samplingParams: params, tokenizer, ...bounds });
    for await (const piece of stream) {
      const text = piece.text ?? "";
      said += text;
      terminal.out(text);
    }
    terminal.out("\n");
  } catch (error) {
    if (said !== "") terminal.out("\n");
    if (!stop.signal.aborted) throw error;
    output.note("Stopped.");
    if (said === "") return;
  }
  conversation.add(line, said);
}

async function openUser(context: CommandContext): Promise<User> {
  const { terminal, signal } = context;
  const { input, err } = terminal.isInteractive;
  if (input && err && terminal.env["TERM"] !== "dumb") return openEditor(context);
  const lines = createInterface({ input: terminal.input, signal });
  return {
    lines: plainLines(lines, context),
    onInterrupt: () => {}, // Ctrl-C is a signal here, and ends the program
    // Whoever goes on reading keeps the process alive.
    close: () => lines.close(),
  };
}

/** Lines of a pipe, or of a screen that cannot be drawn on. */
async function* plainLines(
  lines: Interface,
  { terminal, signal }: CommandContext,
): AsyncGenerator<string> {
  const ask = (): void => {
    if (terminal.isInteractive.input) terminal.err("> ");
  };
  ask();
  for await (const line of lines) {
    if (line.trim() !== "") yield line.trim();
    ask();
  }
  signal.throwIfAborted();
}

async function openEditor(context: CommandContext): Promise<User> {
  const { terminal, signal } = context;
  const history = await openHistory(context);
  const editor = new LineEditor(terminal, {
    prompt: styleFor(terminal, "err").bold("> "),
    history: history?.lines ?? [],
    words: slashWords,
    signal,
  });
  return {
    lines: editedLines(editor, history, signal),
    onInterrupt: (action) => (editor.onInterrupt = action),
    close: () => editor.close(),
  };
}

/** What was typed in other conversations; a folder that cannot be written to costs no more than that. */
async function openHistory({ terminal, output }: CommandContext): Promise<LineHistory | undefined> {
  const file = path.join(dataDirectory(terminal.env), "chat-history");
  try {
    return await LineHistory.open(file);
  } catch (error) {
    output.note(`Warning: what is typed will not be remembered: ${(error as Error).message}`);
    return undefined;
  }
}

async function* editedLines(
  editor: LineEditor,
  history: LineHistory | undefined,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (let line = await editor.ask(); line !== undefined; line = await editor.ask()) {
    const text = line.trim();
    if (text === "") continue;
    // A disk that is full must not end the conversation.
    await history?.add(text).catch(() => {});
    yield text;
  }
  signal.throwIfAborted();
}
