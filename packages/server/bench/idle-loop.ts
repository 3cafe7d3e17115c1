import { once } from "node:events";
import { Worker } from "node:worker_threads";

const program = `
  const { monitorEventLoopDelay } = require("node:perf_hooks");
  const { parentPort } = require("node:worker_threads");
  const resolution = 10;
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  parentPort.on("message", () => {
    parentPort.postMessage(Math.max(0, delays.percentile(99) / 1e6 - resolution));
    delays.reset();
  });
`;

/** An event loop without work; what holds it up is the machine, and holds up every other loop as well. */
export class IdleLoop {
  readonly #worker = new Worker(program, { eval: true });

  /** Its delay since the last look, 99th percentile. */
  async delayMs(): Promise<number> {
    const answer = once(this.#worker, "message");
    this.#worker.postMessage("look", []);
    const [delayMs] = (await answer) as [number];
    return delayMs;
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }
}
