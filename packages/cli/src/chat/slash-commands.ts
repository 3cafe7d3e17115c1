import { homedir } from "node:os";
import path from "node:path";
import { closest } from "../parse/closest.js";
import { CliError } from "../errors/cli-error.js";
import type { Conversation } from "./conversation.js";

/** What a command of the conversation says, and whether it ends it. */
export interface SlashResult {
  readonly text: string;
  readonly isEnd?: true;
}

interface SlashCommand {
  readonly usage: string;
  readonly summary: string;
  run(conversation: Conversation, rest: string, cwd: string): SlashResult | Promise<SlashResult>;
}

const leave = (): SlashResult => ({ text: "", isEnd: true });

const commands: Readonly<Record<string, SlashCommand>> = {
  "/help": { usage: "/help", summary: "shows this", run: () => ({ text: helpText() }) },
  "/system": {
    usage: "/system [TEXT]",
    summary: "sets the message before the conversation; without TEXT there is none",
    run: (conversation, rest) => {
      conversation.system = rest === "" ? undefined : rest;
      return { text: rest === "" ? "No system message." : "The system message is set." };
    },
  },
  "/reset": {
    usage: "/reset",
    summary: "starts anew; the system message stays",
    run: (conversation) => {
      conversation.reset();
      return { text: "The conversation starts anew." };
    },
  },
  "/save": {
    usage: "/save FILE",
    summary: "adds the conversation to a JSONL file, as 'train sft' reads it",
    run: async (conversation, rest, cwd) => {
      if (rest === "") throw new CliError("/save: says no file.", "Write /save FILE.jsonl.");
      if (conversation.isEmpty) {
        throw new CliError("/save: nothing was said yet.", "Save after the first answer.");
      }
      const file = path.resolve(cwd, rest.replace(/^~(?=[/\\])/, homedir()));
      await conversation.save(file);
      return { text: `Saved to ${file}` };
    },
  },
  "/exit": { usage: "/exit", summary: "leaves; so does Ctrl-D", run: leave },
  "/quit": { usage: "/quit", summary: "the same", run: leave },
};

/** The words that begin a command. */
export const slashWords: readonly string[] = Object.keys(commands);

/** Carries a line out that is a command; undefined for one that is meant for the model. */
export async function runSlashCommand(
  line: string,
  conversation: Conversation,
  cwd: string,
): Promise<SlashResult | undefined> {
  // A path such as /etc/hosts is no command.
  const [, word, rest = ""] = /^(\/[a-z]+)(?:\s+(.*))?$/.exec(line) ?? [];
  if (word === undefined) return undefined;
  const command = Object.hasOwn(commands, word) ? commands[word] : undefined;
  if (command) return command.run(conversation, rest, cwd);
  const near = closest(word, slashWords);
  throw new CliError(
    `No such command: ${word}.${near ? ` Did you mean ${near}?` : ""}`,
    "/help lists what there is.",
  );
}

function helpText(): string {
  const width = Math.max(...Object.values(commands).map(({ usage }) => usage.length));
  const rows = Object.values(commands).map(
    ({ usage, summary }) => `  ${usage.padEnd(width)}  ${summary}`,
  );
  return [...rows, "  Ctrl-C stops an answer; at the prompt it ends the program."].join("\n");
}
