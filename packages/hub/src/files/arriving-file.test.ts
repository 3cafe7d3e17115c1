import { open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ArrivingFile } from "./arriving-file.js";

async function* partsOf(bytes: Uint8Array, size: number, breaksAfter: number) {
  for (let at = 0; at < bytes.length; at += size) {
    if (at >= breaksAfter) throw new Error("broken");
    yield bytes.subarray(at, at + size);
  }
}

it("is complete after any number of broken responses, with or without range support", async () => {
  const name = path.join(tmpdir(), `tinker-ts-arriving-${process.pid}`);
  const answers = fc.array(fc.record({ breaksAfter: fc.nat(60), goesOn: fc.boolean() }), {
    maxLength: 6,
  });
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 60 }),
      fc.integer({ min: 1, max: 20 }),
      answers,
      async (bytes, size, breaks) => {
        const handle = await open(name, "w");
        try {
          const arriving = new ArrivingFile(handle);
          for (const { breaksAfter, goesOn } of [...breaks, { breaksAfter: 99, goesOn: true }]) {
            const from = goesOn ? arriving.position : 0;
            const contentRange = from === 0 ? null : `bytes ${from}-${bytes.length - 1}/*`;
            expect(arriving.begin({ status: from === 0 ? 200 : 206, contentRange })).toBe(true);
            await arriving
              .take(partsOf(bytes.subarray(from), size, breaksAfter), () => {})
              .catch(() => {});
          }
          await handle.truncate(arriving.position);
          expect([...(await readFile(name))]).toEqual([...bytes]);
        } finally {
          await handle.close();
        }
      },
    ),
    { numRuns: 60 },
  );
  await rm(name);
});

it("refuses a part that was not requested, or has no position", async () => {
  const handle = await open(tmpdir(), "r");
  try {
    const arriving = new ArrivingFile(handle, 10);
    expect(arriving.begin({ status: 206, contentRange: "bytes 11-20/21" })).toBe(false);
    expect(arriving.begin({ status: 206, contentRange: null })).toBe(false);
    expect(arriving.position).toBe(10);
    expect(arriving.begin({ status: 206, contentRange: "bytes 10-20/21" })).toBe(true);
    expect(arriving.begin({ status: 200, contentRange: null })).toBe(true);
    expect(arriving.position).toBe(0);
  } finally {
    await handle.close();
  }
});
