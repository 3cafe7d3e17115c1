import { readFile, truncate, utimes, writeFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { fixture } from "../../test/support/fixtures.js";
import { useTemporaryFolder } from "../../test/support/temporary-folder.js";
import { SafetensorsFile } from "./safetensors.js";

const inFolder = useTemporaryFolder();
const opened: SafetensorsFile[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((file) => file.close()));
});

async function open(path: string): Promise<SafetensorsFile> {
  const file = await SafetensorsFile.open(path);
  opened.push(file);
  return file;
}

/** Writes a file with any header, right or wrong, and returns its path. */
async function writeRaw(header: unknown, dataBytes = 0): Promise<string> {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  const path = inFolder("raw.safetensors");
  await writeFile(path, Buffer.concat([length, json, Buffer.alloc(dataBytes)]));
  return path;
}

const f32 = (shape: readonly number[], begin: number, end: number) => ({
  dtype: "F32",
  shape,
  data_offsets: [begin, end],
});

describe("reading tensors", () => {
  it("reads F32, F16 and BF16 like PyTorch, special values included", async () => {
    const file = await open(fixture("safetensors/floats.safetensors"));
    const json = await readFile(fixture("safetensors/floats.json"), "utf8");
    const expected = new Map(Object.entries<string[]>(JSON.parse(json)));
    expect([...file.tensors.keys()].toSorted()).toEqual([...expected.keys()].toSorted());
    expect(file.metadata).toEqual({ format: "pt" });
    for (const [name, texts] of expected) {
      expect([...(await file.readFloats(name))], name).toEqual(texts.map(Number));
    }
  });

  it("reads into the middle of a larger array only", async () => {
    const file = await open(fixture("safetensors/floats.safetensors"));
    for (const name of ["weights.f32", "weights.bf16", "weights.f16"]) {
      const whole = new Float32Array(20).fill(7);
      await file.readFloats(name, whole.subarray(3, 16));
      expect(whole.subarray(3, 16), name).toEqual(await file.readFloats(name));
      expect([...whole.subarray(0, 3), ...whole.subarray(16)]).toEqual(Array(7).fill(7));
    }
  });

  it("reads tensors of several chunks, several at a time", async () => {
    const elements = (4 << 20) + 3; // two chunks and a bit in two-byte words
    const words = Uint16Array.from({ length: elements }, (_, i) => i % 0x7f80);
    const tensor = { dtype: "BF16", shape: [elements], data_offsets: [0, elements * 2] };
    const path = await writeRaw({ tensor });
    await writeFile(path, new Uint8Array(words.buffer), { flag: "a" });
    const file = await open(path);
    const reads = await Promise.all([1, 2, 3].map(() => file.readFloats("tensor")));
    const bits = Uint32Array.from(words, (word) => word << 16);
    const expected = Buffer.from(bits.buffer);
    for (const read of reads) expect(expected.equals(new Uint8Array(read.buffer))).toBe(true);
  });

  it("reads a part of a tensor's bytes", async () => {
    const file = await open(fixture("safetensors/integers.safetensors"));
    expect([...(await file.readBytes("ids", { start: 8, end: 17 }))]).toEqual([
      1,
      ...Array(7).fill(0),
      2,
    ]);
    expect(await file.readBytes("ids", { start: 24 })).toHaveLength(0);
  });

  it("refuses integers by name where floats are needed", async () => {
    const file = await open(fixture("safetensors/integers.safetensors"));
    for (const [name, dtype] of Object.entries({ ids: "I64", index: "I32", mask: "U8" })) {
      const message = await engineErrorOf("unsupported_dtype", () => file.readFloats(name));
      expect(message).toContain(`"${name}"`);
      expect(message).toContain(dtype);
    }
  });

  it("refuses a target of the wrong size and an unknown name", async () => {
    const file = await open(fixture("safetensors/floats.safetensors"));
    const wrong = () => file.readFloats("scalar", new Float32Array(2));
    expect(await engineErrorOf("wrong_size", wrong)).toContain('"scalar"');
    expect(await engineErrorOf("unknown_tensor", () => file.readFloats("nope"))).toContain(
      '"nope"',
    );
  });

  it("stops between chunks when aborted", async () => {
    const file = await open(fixture("safetensors/floats.safetensors"));
    const reason = new Error("enough");
    for (const name of ["weights.f32", "weights.bf16"]) {
      const read = file.readFloats(name, undefined, AbortSignal.abort(reason));
      await expect(read).rejects.toBe(reason);
    }
  });

  it("reports a file that was cut while open", async () => {
    const path = await writeRaw({ a: f32([64], 0, 256) }, 256);
    const file = await open(path);
    await truncate(path, 100);
    const message = await engineErrorOf("invalid_safetensors", () => file.readBytes("a"));
    expect(message).toContain(path);
  });
});

describe("checking the header", () => {
  const cases: [problem: string, header: unknown, dataBytes: number, words: string[]][] = [
    ["no JSON", "{", 0, ["not JSON"]],
    ["no object", "[1]", 0, ["not a JSON object"]],
    ["a tensor that is no object", { a: 1 }, 0, ['"a"']],
    ["an unknown dtype", { a: { ...f32([1], 0, 4), dtype: "F99" } }, 4, ['"a"', "F99"]],
    ["a negative size", { a: f32([-1], 0, 4) }, 4, ['"a"', "shape"]],
    ["a fractional size", { a: f32([0.5], 0, 2) }, 2, ['"a"', "shape"]],
    ["a size beyond exact numbers", { a: f32([2 ** 60], 0, 4) }, 4, ['"a"', "shape"]],
    ["one offset", { a: { ...f32([1], 0, 4), data_offsets: [0] } }, 4, ['"a"', "data_offsets"]],
    ["reversed offsets", { a: f32([1], 4, 0) }, 4, ['"a"', "data_offsets"]],
    ["a shape that needs other bytes", { a: f32([3], 0, 8) }, 8, ['"a"', "[3]", "12", "8"]],
    [
      "overlapping tensors",
      { a: f32([2], 0, 8), b: f32([2], 4, 12) },
      12,
      ['"b"', 'overlaps tensor "a"'],
    ],
    ["a hole", { a: f32([1], 0, 4), b: f32([1], 8, 12) }, 12, ['"b"', "4 bytes"]],
    ["trailing bytes", { a: f32([1], 0, 4) }, 9, ["5 bytes"]],
    ["truncation", { a: f32([4], 0, 16) }, 15, ['"a"', "truncated"]],
    ["metadata that is no text", { __metadata__: { step: 1 } }, 0, ['"step"']],
    ["metadata that is no object", { __metadata__: "x" }, 0, ["__metadata__"]],
  ];

  it.each(cases)("refuses %s", async (_, header, dataBytes, words) => {
    const path = await writeRaw(header, dataBytes);
    const message = await engineErrorOf("invalid_safetensors", () => open(path));
    for (const word of [path, ...words]) expect(message).toContain(word);
  });

  it("refuses a name that is listed twice, in any spelling", async () => {
    const entry = JSON.stringify(f32([1], 0, 4));
    const path = await writeRaw(`{"a":${entry}, "\\u0061" : ${entry}}`, 4);
    expect(await engineErrorOf("invalid_safetensors", () => open(path))).toContain(
      '"a" is listed twice',
    );
  });

  it("does not take equal keys of different tensors or quoted brackets for duplicates", async () => {
    const path = await writeRaw({ 'a"}{': f32([1], 0, 4), "a\\": f32([1], 4, 8) }, 8);
    expect([...(await open(path)).tensors.keys()]).toEqual(['a"}{', "a\\"]);
  });

  it("refuses a header length beyond the limit or the file", async () => {
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(2n ** 62n);
    await writeFile(inFolder("long"), length);
    expect(await engineErrorOf("invalid_safetensors", () => open(inFolder("long")))).toContain(
      "limit",
    );
    length.writeBigUInt64LE(9n);
    await writeFile(inFolder("cut"), length);
    expect(await engineErrorOf("invalid_safetensors", () => open(inFolder("cut")))).toContain(
      "truncated",
    );
    await writeFile(inFolder("empty"), "");
    expect(await engineErrorOf("invalid_safetensors", () => open(inFolder("empty")))).toContain(
      "0 bytes",
    );
  });

  it("refuses to read a file that was written since it was opened", async () => {
    const path = await writeRaw({ a: f32([4], 0, 16) }, 16);
    const file = await open(path);
    await file.readFloats("a");
    await utimes(path, 1, 1);
    expect(await engineErrorOf("file_changed", () => file.readFloats("a"))).toContain(path);
  });

  it("reports a missing file", async () => {
    const message = await engineErrorOf("file_missing", () => open(inFolder("absent")));
    expect(message).toContain(inFolder("absent"));
  });
});
