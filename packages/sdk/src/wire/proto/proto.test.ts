import { readFileSync } from "node:fs";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Datum } from "../../types/datum.js";
import { TensorData } from "../../types/tensor-data.js";
import { decodeProto, encodeProto } from "../proto-codec.js";
import {
  file_tinker_public,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
  SampleResponseSchema,
} from "../../../test/support/generated/tinker_public_pb.js";

const hex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));

describe("known messages", () => {
  it("writes a forward request byte for byte", () => {
    const bytes = encodeProto("ForwardBackwardRequest", {
      modelId: "m",
      seqId: 1,
      forwardOnly: true,
      forwardBackwardInput: {
        data: [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [3, 4], weights: [1, 0.5] } }],
        lossFn: "cross_entropy",
        lossFnConfig: { a: 1 },
      },
    });
    expect(Buffer.from(bytes).toString("hex")).toBe(
      "0a016d10011a540a0c0a0a0a08010000000200000012280a0d7461726765745f746f6b656e7312170a10030000000000000004000000000000001802220102121a0a0777656967687473120f0a080000803f0000003f1801220102220d63726f73735f656e74726f70792a0c0a016111000000000000f03f3001",
    );
  });

  it("reads a sample response", () => {
    const bytes = hex(
      "0a160801120805000000060000001a08000000bf000080bf0a0612040700000012080000c07f000000c01a280a10000000000000000009000000000000001210804fc3c7804fc3c7000080be804fc3c7180220022003",
    );
    expect(decodeProto("SampleResponse", bytes)).toEqual({
      type: "sample",
      sequences: [
        {
          stopReason: "length",
          tokens: Int32Array.of(5, 6),
          logprobs: Float64Array.of(-0.5, -1),
          topkLogprobs: null,
        },
        { stopReason: "stop", tokens: Int32Array.of(7), logprobs: null, topkLogprobs: null },
      ],
      promptLogprobs: [null, -2],
      topkPromptLogprobs: [null, [[9, -0.25]]],
      promptCacheHitTokens: 3,
      targetPromptLogprobs: null,
      promptAltTokens: null,
    });
  });

  it("writes the fields that newer clients read, byte for byte", () => {
    const bytes = encodeProto("SampleResponse", {
      sequences: [{ stopReason: "stop", tokens: [7], topkLogprobs: [[[7, -0.5]], null] }],
      targetPromptLogprobs: new TensorData({
        data: Float32Array.of(-1),
        shape: [2, 3],
        sparseCrowIndices: [0, 0, 1],
        sparseColIndices: [2],
      }),
      promptAltTokens: {
        tokens: new TensorData({ data: Int32Array.of(9), shape: [1, 1] }),
        logprobs: new TensorData({ data: Float32Array.of(-2), shape: [1, 1] }),
      },
    });
    expect(Buffer.from(bytes).toString("hex")).toBe(
      "0a2012040700000022180a0807000000000000001208000000bf804fc3c7180120022a32122a0a04000080bf12180000000000000000000000000000000001000000000000001a08020000000000000018012202020332200a100a080900000000000000180222020101120c0a04000000c0180122020101",
    );
  });

  it("widens bfloat16 and splits datums", () => {
    const bytes = hex(
      "0a136d6f643a546f7263684c6f737352657475726e12370a015412300a086c6f6770726f627312240a06803f80bf00401218000000000000000004000000000000000600000000000000180418021a130a086c6f73733a73756d11000000000000f83f",
    );
    const output = decodeProto("ForwardBackwardOutput", bytes);
    expect(output.lossFnOutputType).toBe("TorchLossReturn");
    expect(output.lossFnOutputs.map(({ logprobs }) => logprobs?.toList())).toEqual([[1, -1], [2]]);
    expect(output.lossFnOutputs[0]?.["logprobs"]).toMatchObject({ dtype: "float32", shape: [2] });
    expect(output.metrics).toEqual({ "loss:sum": 1.5 });
  });
});

describe("our writer against the generated code", () => {
  it("agrees on a request, a sample response and an output", () => {
    const request = encodeProto("ForwardBackwardRequest", {
      modelId: "é",
      seqId: 300,
      forwardBackwardInput: {
        data: [
          new Datum({
            modelInput: {
              chunks: [
                { tokens: [1, -2] },
                { data: new Uint8Array(200), format: "png", expectedTokens: 0 },
                { dmel: new Uint8Array() },
              ],
            },
            lossFnInputs: {
              target_tokens: [2 ** 40, -1],
              weights: { data: new Float32Array(300), shape: [100, 3] },
            },
          }),
        ],
        lossFn: "ppo",
      },
    });
    const sample = encodeProto("SampleResponse", {
      sequences: [{ stopReason: "length", tokens: [1], logprobs: [-1], topkLogprobs: [[[1, -1]]] }],
      promptLogprobs: [null, -2],
      topkPromptLogprobs: [null, [[1, -0.5]]],
      promptCacheHitTokens: 1000,
      targetPromptLogprobs: TensorData.fromNested([[-1], [0]], "float32"),
      promptAltTokens: {
        tokens: TensorData.fromNested([[1, 2]], "int64"),
        logprobs: TensorData.fromNested([[-1, -2]], "float32"),
      },
    });
    const output = encodeProto("ForwardBackwardOutput", {
      lossFnOutputType: "T",
      lossFnOutputs: [{ logprobs: TensorData.fromNested([[1, 2]], "float32") }],
      metrics: { "loss:sum": -1.5 },
    });
    for (const [schema, bytes] of [
      [ForwardBackwardRequestSchema, request],
      [SampleResponseSchema, sample],
      [ForwardBackwardOutputSchema, output],
    ] as const) {
      expect(Buffer.from(toBinary(schema, fromBinary(schema, bytes)))).toEqual(Buffer.from(bytes));
    }
  });

  it("agrees on texts of every length and letter, and on numbers of every size", () => {
    const letter = fc.constantFrom("a", "~", "\u007f", "\u0080", "é", "ж", "中", "🌱");
    const text = fc.string({ unit: letter, maxLength: 80, size: "max" });
    const size = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 70_000 }));
    fc.assert(
      fc.property(text, text, size, fc.integer({ min: 1, max: 2 ** 31 - 1 }), (...parts) => {
        const [modelId, name, length, seqId] = parts;
        const inputs = { weights: new Float32Array(length) };
        const bytes = encodeProto("ForwardBackwardRequest", {
          modelId,
          seqId,
          forwardBackwardInput: {
            data: [{ modelInput: [1], lossFnInputs: inputs }],
            lossFn: "ppo",
            lossFnConfig: { [name]: 1 },
          },
        });
        const known = fromBinary(ForwardBackwardRequestSchema, bytes);
        expect([known.modelId, known.seqId]).toEqual([modelId, seqId]);
        expect(Object.keys(known.lossFnConfig)).toEqual([name]);
        const read = decodeProto(
          "ForwardBackwardRequest",
          toBinary(ForwardBackwardRequestSchema, known),
        );
        expect(read.modelId).toBe(modelId);
        expect(Object.keys(read.forwardBackwardInput.lossFnConfig ?? {})).toEqual([name]);
        expect(read.forwardBackwardInput.data[0]?.lossFnInputs["weights"]?.data).toHaveLength(
          length,
        );
      }),
    );
  });

  it("was generated from the .proto file of the repository", () => {
    const proto = readFileSync(
      new URL("../../../proto/tinker_public.proto", import.meta.url),
      "utf8",
    );
    const declared = [...proto.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)].map(
      ([, name, body]) => [
        name,
        [...body!.matchAll(/(\w+) = (\d+);/g)].map(([, field, number]) => `${field}=${number}`),
      ],
    );
    const generated = file_tinker_public.messages.map((message) => [
      message.name,
      message.fields.map((field) => `${field.name}=${field.number}`),
    ]);
    expect(generated).toEqual(declared);
  });
});

it("keeps the number format of every datum's output", () => {
  const outputs = [Float32Array.of(1), Int32Array.of(1), Float32Array.of(1, 2)];
  const alike = new TensorData({ data: Float32Array.of(3), shape: [1] });
  const bytes = encodeProto("ForwardBackwardOutput", {
    lossFnOutputType: "x",
    lossFnOutputs: outputs.map((data) => {
      const a = new TensorData({ data, shape: [data.length] });
      return { a, alike };
    }),
  });
  const { lossFnOutputs } = decodeProto("ForwardBackwardOutput", bytes);
  expect(lossFnOutputs.map(({ a }) => a?.data)).toEqual(outputs);
});

describe("refusals", () => {
  it("names what cannot be trained on", () => {
    const data = [{ modelInput: { chunks: [{ location: "x", format: "png" as const }] } }];
    expect(() =>
      encodeProto("ForwardBackwardRequest", {
        modelId: "m",
        forwardBackwardInput: { data, lossFn: "ppo" },
      }),
    ).toThrow(/data\[0\].model_input.*asset pointer/);
  });

  it("refuses outputs that claim a million empty datums", () => {
    const bytes = hex("12051880ade204");
    expect(() => decodeProto("ForwardBackwardOutput", bytes)).toThrow("without any field");
  });
});
