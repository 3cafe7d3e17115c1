import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import path from "node:path";
import { createInterface } from "node:readline";
import type { BenchModel } from "./bench-model.js";

/** Asks a server that is nothing but one; tells how long its engine took. */
export type AskBare = (call: string, body: object) => Promise<number>;

/** Does `work` with a server that only hands calls to an engine, in a process of its own. */
export async function withBareServer(
  { folder }: BenchModel,
  work: (ask: AskBare) => Promise<void>,
): Promise<void> {
  const program = path.join(import.meta.dirname, "bare-server.mjs");
  const child = spawn(process.execPath, [program, folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const agent = new Agent({ keepAlive: true });
  try {
    const [port] = (await once(createInterface(child.stdout), "line")) as [string];
    await work((call, body) => post({ port: Number(port), agent }, call, JSON.stringify(body)));
  } finally {
    agent.destroy();
    child.kill();
  }
}

/** How long an engine took, by the header of an answer. */
export function engineMs(timing: unknown): number {
  return Number(/engine;dur=([\d.]+)/.exec(String(timing))?.[1]);
}

function post(
  { port, agent }: { port: number; agent: Agent },
  call: string,
  body: string,
): Promise<number> {
  const headers = { "content-length": Buffer.byteLength(body) };
  const options = { host: "127.0.0.1", port, agent, path: `/${call}`, method: "POST", headers };
  return new Promise((resolve, reject) => {
    const asked = request(options, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        JSON.parse(Buffer.concat(parts).toString());
        resolve(engineMs(response.headers["server-timing"]));
      });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}
