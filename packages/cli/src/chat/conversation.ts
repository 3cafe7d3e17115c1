import { appendFile, open } from "node:fs/promises";
import type { ChatMessage } from "@tinker-ts/hub";

/** What was said so far, after the system message if there is one. */
export class Conversation {
  /** The message that stands before everything; survives `reset`. */
  system: string | undefined;
  #turns: readonly ChatMessage[] = [];

  constructor(system: string | undefined) {
    this.system = system;
  }

  /** Everything, in order. */
  get messages(): readonly ChatMessage[] {
    if (this.system === undefined) return this.#turns;
    return [{ role: "system", content: this.system }, ...this.#turns];
  }

  /** Whether nothing was said. */
  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** Adds what the user said and what was answered. */
  add(question: string, answer: string): void {
    const asked = { role: "user", content: question };
    this.#turns = [...this.#turns, asked, { role: "assistant", content: answer }];
  }

  /** Forgets what was said. */
  reset(): void {
    this.#turns = [];
  }

  /** Adds the conversation to a file of conversations, as `train sft` reads them. */
  async save(file: string): Promise<void> {
    const row = JSON.stringify({ messages: this.messages });
    await appendFile(file, `${(await lacksLineEnd(file)) ? "\n" : ""}${row}\n`);
  }
}

/** Whether the last line of a file is not ended, as other programs leave it. */
async function lacksLineEnd(file: string): Promise<boolean> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (!handle) return false;
  try {
    const { size } = await handle.stat();
    if (size === 0) return false;
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    return buffer[0] !== 0x0a;
  } finally {
    await handle.close();
  }
}
