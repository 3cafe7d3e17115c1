import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { ModelInput } from "../types/model-input.js";
import { TensorData } from "../types/tensor-data.js";
import { decodeJson } from "../wire/json-codec.js";
import { ownArray } from "./typed-lists.js";

/** What code makes in another realm. */
const made = (code: string) => runInNewContext(code);

it.each(["Float32Array", "Float64Array", "Int8Array", "Int16Array", "Int32Array", "Uint8Array"])(
  "converts a %s of another realm to this one without copying",
  (kind) => {
    const other = made(`new ${kind}([1, 2, 3]).subarray(1)`);
    const own = ownArray(other);
    expect(own.constructor).toBe(globalThis[kind as "Float32Array"]);
    expect([...own]).toEqual([2, 3]);
    expect(own.buffer).toBe(other.buffer);
    expect(ownArray(own)).toBe(own);
  },
);

it("leaves everything else as it is", () => {
  for (const value of [null, "text", [1], new DataView(new ArrayBuffer(2)), Uint16Array.of(1)]) {
    expect(ownArray(value)).toBe(value);
  }
});

it("lets tensors, prompts and texts come from another realm", () => {
  expect(TensorData.fromTypedArray(made("new Float32Array([1.5])"))).toEqual(
    TensorData.fromTypedArray(Float32Array.of(1.5)),
  );
  expect(TensorData.fromTypedArray(made("new BigInt64Array([5n])")).data).toEqual(Int32Array.of(5));
  expect(() => TensorData.fromTypedArray(made("new Uint16Array([1])"))).toThrow("Uint16Array");
  expect(ModelInput.from(made("new Int32Array([5, 6])")).toInts()).toEqual(Int32Array.of(5, 6));
  const text = '{"model_id":"m","type":"unload_model"}';
  const bytes = made(`Uint8Array.from(${JSON.stringify([...Buffer.from(text)])})`);
  expect(decodeJson("UnloadModelRequest", bytes)).toEqual(decodeJson("UnloadModelRequest", text));
});
