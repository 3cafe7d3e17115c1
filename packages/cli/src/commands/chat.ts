import { Conversation } from "../chat/conversation.js";
import { runSlashCommand, slashWords } from "../chat/slash-commands.js";
import { defineCommand, type CommandContext } from "../command.js";
import { hasTemplate, promptOf } from "../connect/chat-prompt.js";
import { thinkingModes } from "../output/thinking-modes.js";
import { dataDirectory } from "../connect/data-directory.js";
import { orLocal } from "../connect/or-local.js";
import { withService, type OpenService } from "../connect/with-service.js";
import { errorText } from "../output/describe-error.js";
import { samplingOptions, samplingParams } from "../parse/sampling-options.js";
import { findSource } from "../connect/model-source.js";
import { nameOf, sourceOptions } from "../parse/source-options.js";
import { LineEditor } from "../terminal/line-editor.js";
import { styleFor } from "../terminal/style.js";
import type { Tokenizer } from "@tinker-ts/hub";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { SamplingClient, SamplingParamsInput } from "tinker-ts";

/** `chat` */
export const command = defineCommand({
  summary: "Chat with a base model or a checkpoint; /reset starts a new conversation.",
  details: [
    "/help lists what else there is: /system TEXT, /reset, /save FILE, /exit.",
    "Ctrl-C stops an answer; at the prompt it ends the program, as Ctrl-D does.",
    "A model without a chat template just continues the text of the conversation.",
  ],
  options: {
    ...sourceOptions,
    system: { type: "string", description: "System message" },
    ...samplingOptions,
    maxTokens: { ...samplingOptions.maxTokens, default: 512 },
    temperature: { ...samplingOptions.temperature, default: 0.7 },
  },
  arguments: {},
  examples: ["chat --model tinker-ts/sprout", "chat --model tinker://RUN_ID/sampler_weights/NAME"],
  async run(given, { options }) {
    const context = orLocal(given);
    const source = await findSource(options, context.terminal.cwd);
    const { output } = context;
    await withService(context, async (open) => {
      const sampling = await open.service.createSamplingClient({ ...source, ...open.bounds });
      const tokenizer = await sampling.getTokenizer(open.bounds);
      output.note(
        hasTemplate(tokenizer)
          ? `Talking to ${nameOf(source)}${await thinkingNote(tokenizer)}. /help lists commands, /exit leaves.`
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

/** Whether prompts have the model think first; nothing where it chooses. */
async function thinkingNote(tokenizer: Tokenizer): Promise<string> {
  const { text } = await promptOf(tokenizer, [{ role: "user", content: "Hi" }]);
  const { thinkingState } = await import("@tinker-ts/hub");
  const mode = thinkingModes[thinkingState(text)];
  return mode === null ? "" : `, which ${mode}`;
}

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

/** Carries out a line; true for the last one. A failure does not end the conversation. */
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
    const { text: before, tokens: prompt } = await promptOf(tokenizer, asked);
    const stream = sampling.stream({ prompt, samplingParams: params, tokenizer, ...bounds });
    for await (const piece of stream) {
      const text = piece.text ?? "";
      said += text;
      terminal.out(text);
    }
    terminal.out("\n");
    const { sequences } = await stream.response;
    const { thinkingState } = await import("@tinker-ts/hub");
    if (sequences[0]?.stopReason === "length" && thinkingState(before + said) === "inside") {
      output.note(
        `There is no answer: the model thought until --max-tokens ${params.maxTokens} ended it. Raise it, or ask a larger model.`,
      );
    }
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
    // An open reader keeps the process alive.
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

const mostLines = 1000;
const mostCharacters = 4096;

/** What was typed before, in a file that only its owner reads. */
class LineHistory {
  /** The newest last. */
  readonly lines: readonly string[];
  readonly #file: string;
  #last: string | undefined;

  private constructor(file: string, lines: readonly string[]) {
    this.#file = file;
    this.lines = lines;
    this.#last = lines.at(-1);
  }

  /** Reads the file; one that has grown too long is cut to its newest lines. */
  static async open(file: string): Promise<LineHistory> {
    await mkdir(path.dirname(file), { recursive: true });
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return "";
      throw error;
    });
    const all = text.split("\n").filter((line) => line !== "");
    const lines = all.slice(-mostLines);
    if (lines.length < all.length) {
      const { writeFileAtomically } = await import("@tinker-ts/hub/files");
      await writeFileAtomically(file, (draft) =>
        writeFile(draft, `${lines.join("\n")}\n`, { mode: 0o600 }),
      );
    }
    return new LineHistory(file, lines);
  }

  /** Adds a line, unless it repeats the last one or was not typed by hand. */
  async add(line: string): Promise<void> {
    if (line === this.#last || line.length > mostCharacters) return;
    this.#last = line;
    // Appending lets several programs share the file.
    await appendFile(this.#file, `${line}\n`, { mode: 0o600 });
  }
}
