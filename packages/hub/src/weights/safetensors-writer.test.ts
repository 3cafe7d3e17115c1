import { readdir, readFile, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { fixture, modelFixture } from "../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import { writeSafetensors, type TensorToWrite } from "./safetensors-writer.js";
import { isStoredDtype, SafetensorsFile } from "./safetensors.js";
import type { StoredDtype } from "./weight-source.js";

const inFolder = useTemporaryFolder();

describe("writing a file", () => {
  it.each([
    fixture("safetensors/floats.safetensors"),
    modelFixture("qwen3/model/model.safetensors"),
    modelFixture("llama/adapter/adapter_model.safetensors"),
  ])("gives the bytes that the reference implementation gave for %s", async (path) => {
    const file = await SafetensorsFile.open(path);
    const tensors: TensorToWrite[] = [];
    for (const { name: tensor, dtype, shape } of file.tensors.values()) {
      if (!isStoredDtype(dtype)) throw new Error(`${tensor} is not a float tensor`);
      tensors.push({ name: tensor, dtype, shape, data: await file.readFloats(tensor) });
    }
    await writeSafetensors(inFolder("copy"), tensors.toReversed(), { metadata: file.metadata });
    await file.close();
    expect((await readFile(inFolder("copy"))).equals(await readFile(path))).toBe(true);
  });

  it("round-trips any names, shapes and types", async () => {
    const tensor = fc.record({
      name: fc.string({ unit: "binary" }).filter((name) => name !== "__metadata__"),
      dtype: fc.constantFrom<StoredDtype>("F32", "F16", "BF16"),
      shape: fc.array(fc.nat(4), { maxLength: 3 }),
    });
    const tensors = fc.uniqueArray(tensor, { selector: ({ name }) => name, maxLength: 6 });
    const metadata = fc.dictionary(fc.string(), fc.string());
    await fc.assert(
      fc.asyncProperty(tensors, metadata, async (list, texts) => {
        const values = list.map((entry) => {
          const elements = entry.shape.reduce((a, b) => a * b, 1);
          return { ...entry, data: Float32Array.from({ length: elements }, (_, i) => i - 2) };
        });
        await writeSafetensors(inFolder("any"), values, { metadata: texts });
        const file = await SafetensorsFile.open(inFolder("any"));
        expect({ ...file.metadata }).toEqual({ ...texts });
        expect(file.tensors.size).toBe(list.length);
        for (const { name, dtype, shape, data } of values) {
          expect(file.tensors.get(name)).toMatchObject({ dtype, shape });
          expect(await file.readFloats(name)).toEqual(data);
        }
        await file.close();
      }),
      { numRuns: 50 },
    );
  });

  it("keeps small, large and very large tensors in their order", async () => {
    const megabyte = 1 << 18;
    const lengths = [3, megabyte - 2, 1, megabyte, 5, megabyte + 1, 2, 3 * megabyte, 7];
    const tensors = lengths.map((length, index) => ({
      name: `${index}`,
      shape: [length],
      data: Float32Array.from({ length }, (_, place) => index + place / length),
    }));
    await writeSafetensors(inFolder("sizes"), tensors);
    const file = await SafetensorsFile.open(inFolder("sizes"));
    for (const { name, data } of tensors) {
      const read = await file.readFloats(name);
      expect(Buffer.compare(Buffer.from(read.buffer), Buffer.from(data.buffer))).toBe(0);
    }
    await file.close();
  });

  it("loads one tensor at a time and reports each", async () => {
    const events: string[] = [];
    const tensors = ["b", "a"].map((name) => ({
      name,
      shape: [2],
      data: async () => {
        events.push(`read ${name}`);
        return Float32Array.of(1, 2);
      },
    }));
    await writeSafetensors(inFolder("lazy"), tensors, {
      onTensor: (name, sizeBytes) => events.push(`wrote ${name} (${sizeBytes})`),
    });
    expect(events).toEqual(["read a", "wrote a (8)", "read b", "wrote b (8)"]);
  });

  it("writes bytes that are in the stored type already as they are", async () => {
    const data = Uint8Array.of(1, 2, 3, 4);
    await writeSafetensors(inFolder("raw"), [{ name: "a", dtype: "BF16", shape: [2], data }]);
    const file = await SafetensorsFile.open(inFolder("raw"));
    expect(await file.readBytes("a")).toEqual(data);
    await file.close();
  });
});

describe("a write that fails", () => {
  const good: TensorToWrite = { name: "a", shape: [1], data: Float32Array.of(1) };

  it("leaves only the old file", async () => {
    await writeFile(inFolder("file"), "old");
    const broken = {
      name: "b",
      shape: [1],
      data: () => Promise.reject(new Error("disk on fire")),
    };
    await expect(writeSafetensors(inFolder("file"), [good, broken])).rejects.toThrow(
      "disk on fire",
    );
    expect(await readdir(inFolder())).toEqual(["file"]);
    expect(await readFile(inFolder("file"), "utf8")).toBe("old");
  });

  it("leaves no files when aborted", async () => {
    const reason = new Error("enough");
    const writing = writeSafetensors(inFolder("file"), [good], {
      signal: AbortSignal.abort(reason),
    });
    await expect(writing).rejects.toBe(reason);
    expect(await readdir(inFolder())).toEqual([]);
  });

  it("names a tensor with data that does not fill its shape", async () => {
    const tensor = { name: "short", shape: [2, 2], data: Float32Array.of(1) };
    const write = () => writeSafetensors(inFolder("file"), [tensor]);
    const message = await engineErrorOf("invalid_tensor", write);
    expect(message).toContain('"short"');
    expect(message).toContain("[2, 2]");
  });

  it("refuses two tensors of one name", async () => {
    const message = await engineErrorOf("invalid_tensor", () =>
      writeSafetensors(inFolder("file"), [good, good]),
    );
    expect(message).toContain('"a"');
  });
});
