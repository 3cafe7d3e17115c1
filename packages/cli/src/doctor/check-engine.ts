import type { Int8Support } from "@tinker-ts/engine";
import { broken, ok, type Finding } from "./finding.js";

/** Starts the engine, which loads its native library. */
export async function checkEngine(): Promise<Finding> {
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
  if (digitBits === null) return "not exact on this processor, 32 bits are used in their place";
  if (!isUsed) return "slower than 32 bits on this processor, which are used in their place";
  const digits = digitBits === 7 ? "three digits of 7 bits" : "two digits of 8 bits";
  return `products ${speedup.toFixed(1)} times as fast as in 32 bits, int16 activations in ${digits}`;
}
