import type { CommandContext } from "../command.js";
import { checkDisk, checkLostAndFound } from "./check-disk.js";
import { checkEngine } from "./check-engine.js";
import { checkGpu } from "./check-gpu.js";
import { checkMemory } from "./check-memory.js";
import { checkServer } from "./check-server.js";
import { broken, ok, type Finding } from "./finding.js";

const oldestNode = [20, 19] as const;

/** Looks at everything that commands need, one thing after the other. */
export async function runChecks(context: CommandContext, model?: string): Promise<Finding[]> {
  const engine = await checkEngine();
  return [
    checkNode(),
    engine,
    // Without an engine there is nothing to compare.
    ...(engine.state === "ok" ? await checkGpu() : []),
    ...(model === undefined ? [] : await checkMemory(model)),
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
