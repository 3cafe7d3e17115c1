import type { Command } from "./command.js";

/** A command that is loaded when it is used. */
export interface CommandLeaf {
  readonly kind: "command";
  readonly summary: string;
  readonly load: () => Promise<{ readonly command: Command }>;
}

/** Commands under a common word. */
export interface CommandGroup {
  readonly kind: "group";
  readonly summary: string;
  readonly children: ReadonlyMap<string, CommandNode>;
}

/** A word of the command line. */
export type CommandNode = CommandLeaf | CommandGroup;
