import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import {
  decodeJson,
  decodeProto,
  encodeJson,
  stringifyJson,
  WireError,
  type ProtoTypeName,
  type WireTypeName,
} from "../src/wire/index.js";
import { mutateBytes, mutateJson, mutateText, Random } from "./support/mutate.js";

const rounds = process.env["TINKER_TS_TEST_FULL"] ? 100_000 : 4_000;

describe(`${rounds} damaged messages each`, () => {
  it("JSON decodes or fails with WireError, and decoded values can be encoded", () => {
    const cases = load<{ type: WireTypeName; wire: unknown }>("wire-json.json");
    const random = new Random(20_260_101);
    const accepted = survive(rounds, () => {
      const { type, wire } = random.pick(cases);
      const damaged = mutateJson(random.below(2) ? wire : mutateJson(wire, random), random);
      const input = random.below(2) ? damaged : mutateText(stringifyJson(damaged), random);
      encodeJson(type, decodeJson(type, input) as never);
    });
    expect(accepted).toBeGreaterThan(rounds / 100);
  });

  it("protobuf decodes or fails with WireError", () => {
    const cases = load<{ type: ProtoTypeName; bytes: string }>("wire-proto.json").map((entry) => ({
      type: entry.type,
      bytes: Buffer.from(entry.bytes, "base64"),
    }));
    const random = new Random(20_260_102);
    const accepted = survive(rounds, () => {
      const { type, bytes } = random.pick(cases);
      decodeProto(type, mutateBytes(mutateBytes(bytes, random), random));
    });
    expect(accepted).toBeGreaterThan(rounds / 100);
  });
});

/** Runs many rounds; any error but ours escapes. Memory must not grow with the number of rounds. */
function survive(count: number, round: () => void): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let accepted = 0;
  let heapAfterWarmUp = 0;
  for (let index = 0; index < count; index++) {
    if (index === Math.floor(count / 4)) {
      collect();
      heapAfterWarmUp = process.memoryUsage().heapUsed;
    }
    try {
      round();
      accepted++;
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
  }
  collect();
  expect(process.memoryUsage().heapUsed - heapAfterWarmUp).toBeLessThan(20 * 1024 * 1024);
  return accepted;
}

function load<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8")) as T[];
}
