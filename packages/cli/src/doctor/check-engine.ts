import { broken, ok, type Finding } from "./finding.js";

/** Starts the engine, which loads its native library. */
export async function checkEngine(): Promise<Finding> {
  try {
    const { Engine } = await import("@tinker-ts/engine");
    const startedAt = performance.now();
    const engine = await Engine.create();
    await engine.close();
    return ok("Engine", `starts in ${Math.round(performance.now() - startedAt)} ms`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return broken(
      "Engine",
      reason,
      `Install @tinker-ts/engine for this platform (${process.platform} ${process.arch}): npm install @tinker-ts/engine. Servers elsewhere work without it.`,
    );
  }
}
