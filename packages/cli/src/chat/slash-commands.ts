import { homedir } from "node:os";
import path from "node:path";
import { closest } from "../parse/closest.js";
import { CliError } from "../errors/cli-error.js";
import type { Conversation } from "./conversation.js";

/** The text that a command prints; `isEnd` ends the conversation. */
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
  "/help": { usage: "/help", summary: "Show this help", run: () => ({ text: helpText() }) },
  "/system": {
    usage: "/system [TEXT]",
    summary: "Set the system message; without TEXT remove it",
    run: (conversation, rest) => {
      conversation.system = rest === "" ? undefined : rest;
      return { text: rest === "" ? "No system message." : "The system message is set." };
    },
  },
  "/reset": {
    usage: "/reset",
    summary: "Start a new conversation; keep the system message",
    run: (conversation) => {
      conversation.reset();
      return { text: "This is a new conversation." };
    },
  },
  "/save": {
    usage: "/save FILE",
    summary: "Add the conversation to a JSONL file for 'train sft'",
    run: async (conversation, rest, cwd) => {
      if (rest === "")
        throw new CliError("/save: the file name is missing.", "Write /save FILE.jsonl.");
      if (conversation.isEmpty) {
        throw new CliError("/save: the conversation is empty.", "Save after the first answer.");
      }
      const file = path.resolve(cwd, rest.replace(/^~(?=[/\\])/, homedir()));
      await conversation.save(file);
      return { text: `Saved to ${file}` };
    },
  },
  "/exit": { usage: "/exit", summary: "Leave; so does Ctrl-D", run: leave },
  "/quit": { usage: "/quit", summary: "Leave", run: leave },
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
    "/help lists the commands.",
  );
}

function helpText(): string {
  const width = Math.max(...Object.values(commands).map(({ usage }) => usage.length));
  const rows = Object.values(commands).map(
    ({ usage, summary }) => `  ${usage.padEnd(width)}  ${summary}`,
  );
  return [...rows, "  Ctrl-C stops an answer; at the prompt it ends the program."].join("\n");
}
