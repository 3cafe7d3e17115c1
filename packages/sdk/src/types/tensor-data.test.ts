import { describe, expect, it } from "vitest";
import { Datum } from "./datum.js";
import { TensorData } from "./tensor-data.js";

describe("TensorData", () => {
  it.each([
    [Float32Array.of(1.5), "float32"],
    [Float64Array.of(1.5), "float32"],
    [Int8Array.of(1), "int64"],
    [Int16Array.of(1), "int64"],
    [Int32Array.of(1), "int64"],
    [BigInt64Array.of(1n), "int64"],
  ])("takes %o as %s", (data, dtype) => {
    expect(TensorData.fromTypedArray(data).dtype).toBe(dtype);
  });

  it.each([
    Uint8Array.of(1),
    Uint16Array.of(1),
    Uint32Array.of(1),
    Uint8ClampedArray.of(1),
    BigUint64Array.of(1n),
  ])("refuses %o by name", (data) => {
    expect(() => TensorData.fromTypedArray(data as never)).toThrow(data.constructor.name);
  });

  it("keeps int64 values exact and small ones in 32 bits", () => {
    const wide = TensorData.fromNested([1, 2n ** 62n], "int64");
    expect(wide.data).toEqual(BigInt64Array.of(1n, 2n ** 62n));
    expect(wide.toList()).toEqual([1, 2n ** 62n]);
    expect(new TensorData({ data: BigInt64Array.of(-1n, 7n) }).data).toEqual(Int32Array.of(-1, 7));
    expect(() => TensorData.fromNested([2 ** 60], "int64")).toThrow("bigint");
    expect(() => TensorData.fromNested([0.5], "int64")).toThrow("integers");
  });

  it("nests values by its shape", () => {
    const list = [
      [1, 2, 3],
      [4, 5, 6],
    ];
    const tensor = TensorData.fromNested(list, "float32");
    expect(tensor.shape).toEqual([2, 3]);
    expect(tensor.toNested()).toEqual(list);
    expect(new TensorData({ data: Float32Array.of(1, 2) }).toNested()).toEqual([1, 2]);
  });

  it("becomes sparse only when that saves space, and dense again without loss", () => {
    const data = new Float32Array(40);
    data[7] = 1.5;
    data[39] = -2;
    const dense = TensorData.fromTypedArray(data, [4, 10]);
    const sparse = dense.toCompact();
    expect(sparse.sparseCrowIndices).toEqual(Int32Array.of(0, 1, 1, 1, 2));
    expect(sparse.sparseColIndices).toEqual(Int32Array.of(7, 9));
    expect(sparse.data).toEqual(Float32Array.of(1.5, -2));
    expect(sparse.toDense()).toEqual(dense);
    // (rows + 1) + 2 x stored must be below rows x columns
    const borderline = TensorData.fromNested(
      [
        [1, 0, 0],
        [0, 0, 0],
      ],
      "float32",
    );
    expect(borderline.toCompact().isSparse).toBe(true);
    expect(
      TensorData.fromNested(
        [
          [1, 1, 0],
          [0, 0, 0],
        ],
        "float32",
      ).toCompact().isSparse,
    ).toBe(false);
  });

  it.each([
    [{ data: Float32Array.of(1), shape: [2] }, "shape"],
    [{ data: Float32Array.of(1), shape: [-1] }, "shape"],
    [{ data: Float32Array.of(1), shape: [1, 1], sparseCrowIndices: [0, 1] }, "sparse_col_indices"],
    [
      { data: Float32Array.of(1), shape: [1], sparseCrowIndices: [0, 1], sparseColIndices: [0] },
      "two dimensions",
    ],
    [
      { data: Float32Array.of(1), shape: [1, 1], sparseCrowIndices: [0, 2], sparseColIndices: [0] },
      "sparse_crow_indices",
    ],
    [
      { data: Float32Array.of(1), shape: [1, 1], sparseCrowIndices: [0, 1], sparseColIndices: [1] },
      "sparse_col_indices",
    ],
  ])("refuses %o", (init, problem) => {
    expect(() => new TensorData(init)).toThrow(problem);
  });
});

describe("Datum", () => {
  const inputs = (lossFnInputs: Datum["lossFnInputs"] | object) =>
    new Datum({ modelInput: [1, 2], lossFnInputs: lossFnInputs as never }).lossFnInputs;

  it("gives plain lists the dtype of their name", () => {
    const converted = inputs({ target_tokens: [3, 4], weights: [1, 0], advantages: [[0.5], [1]] });
    expect(converted["target_tokens"]?.dtype).toBe("int64");
    expect(converted["weights"]?.data).toEqual(Float32Array.of(1, 0));
    expect(converted["advantages"]?.shape).toEqual([2, 1]);
  });

  it("reads booleans as 0 and 1", () => {
    expect(inputs({ weights: [true, false] })["weights"]?.data).toEqual(Float32Array.of(1, 0));
  });

  it("stores a two-dimensional tensor of targets or weights sparsely", () => {
    const tensor = { data: new Float32Array(100), shape: [10, 10] };
    expect(inputs({ weights: tensor })["weights"]?.isSparse).toBe(true);
    expect(inputs({ logprobs: tensor })["logprobs"]?.isSparse).toBe(false);
  });

  it("keeps ready tensors as they are", () => {
    const tensor = TensorData.fromNested([1], "float32");
    expect(inputs({ anything: tensor })["anything"]).toBe(tensor);
  });

  it.each([
    [{ weights: [[1, 2], [3]] }, "lossFnInputs.weights: the list is ragged"],
    [{ weights: [1, [2]] }, "lossFnInputs.weights: the list is ragged"],
    [{ weights: [1, null] }, "lossFnInputs.weights: expected numbers, got null"],
    [{ weights: ["a"] }, "lossFnInputs.weights: expected numbers, got string"],
    [{ weights: "abc" }, "lossFnInputs.weights"],
    [{ target_tokens: [1.5] }, "lossFnInputs.target_tokens: expected integers"],
    [{ mask: [1] }, "lossFnInputs.mask: a plain list has no dtype"],
    [{ mask: Uint8Array.of(1) }, "lossFnInputs.mask: Uint8Array"],
  ])("refuses %j with the name", (lossFnInputs, message) => {
    expect(() => inputs(lossFnInputs)).toThrow(message);
  });
});
