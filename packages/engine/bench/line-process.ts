import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** A program that measures: a line on its standard input asks, a line on its output answers with a number. */
export interface LineProcess {
  ask(line: string): Promise<number>;
  close(): void;
}

/** Starts such a program, whose first line says that it is ready. */
export async function startLineProcess(
  command: string,
  args: readonly string[],
): Promise<LineProcess> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`${command} ended`);
    return value;
  };
  await next();
  return {
    async ask(line) {
      child.stdin.write(`${line}\n`);
      return Number(await next());
    },
    close: () => child.stdin.end(),
  };
}
