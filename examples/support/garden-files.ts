import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gardenTalk } from "./garden-talk.js";
import type { Exchange } from "./task.js";

/** A folder with conversations to learn from and others that are kept back, as a person might have them. */
export async function gardenFiles(rows: number): Promise<{
  readonly folder: string;
  readonly lessons: string;
  readonly exam: string;
}> {
  const folder = await mkdtemp(path.join(tmpdir(), "garden-talk-"));
  const task = gardenTalk();
  const write = async (name: string, exchanges: readonly Exchange[]): Promise<string> => {
    const lines = exchanges.map(({ question, answer }) => {
      const messages = [
        { role: "user", content: question },
        { role: "assistant", content: answer },
      ];
      return JSON.stringify({ messages });
    });
    const file = path.join(folder, name);
    await writeFile(file, `${lines.join("\n")}\n`);
    return file;
  };
  return {
    folder,
    lessons: await write("lessons.jsonl", task.lesson(rows)),
    exam: await write("exam.jsonl", task.exam),
  };
}
