import type { CommandContext } from "../command.js";
import { checkGpu } from "./check-gpu.js";
import { checkServer } from "./check-server.js";
import { checkModel } from "./check-model.js";
import { checkDisk, checkLostAndFound } from "./check-disk.js";
import { broken, ok, type Finding } from "./finding.js";
import type { Int8Support } from "@tinker-ts/engine";

const oldestNode = [20, 19] as const;

/** Checks everything that commands need, one thing after the other. */
export async function runChecks(context: CommandContext, model?: string): Promise<Finding[]> {
  const engine = await checkEngine();
  return [
    checkNode(),
    engine,
    // Without an engine there is nothing to compare.
    ...(engine.state === "ok" ? await checkGpu() : []),
    ...(model === undefined ? [] : await checkModel(model)),
    await checkDisk(context.terminal.env),
    ...(await checkLostAndFound(context.terminal.env)),
    ...(await checkServer(context)),
  ];
}

function checkNode(): Finding {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isNew = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  return isNew
    ? ok("Node", node)
    : broken("Node", node, `Install Node ${oldestNode.join(".")} or newer.`);
}

/** Starts the engine, which loads its native library. */
async function checkEngine(): Promise<Finding> {
  try {
    const { Engine } = await import("@tinker-ts/engine");
    const startedAt = performance.now();
    const engine = await Engine.create();
    const startMs = Math.round(performance.now() - startedAt);
    const int8 = await engine.checkInt8();
    await engine.close();
    return ok("Engine", `starts in ${startMs} ms; int8 weights: ${describeInt8(int8)}`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return broken(
      "Engine",
      reason,
      `Install @tinker-ts/engine for this platform (${process.platform} ${process.arch}): npm install @tinker-ts/engine. Servers elsewhere work without it.`,
    );
  }
}

function describeInt8({ digitBits, speedup, isUsed }: Int8Support): string {
  if (digitBits === null) return "not exact on this processor, 32 bits are used instead";
  if (!isUsed) return "slower than 32 bits on this processor, which are used instead";
  const digits = digitBits === 7 ? "three digits of 7 bits" : "two digits of 8 bits";
  return `products ${speedup.toFixed(1)} times as fast as in 32 bits, int16 activations in ${digits}`;
}
