import { fromBinary } from "@bufbuild/protobuf";
import { Datum, policyDatum, supervisedDatum, type DatumProvenance } from "tinker-ts";
import { decodeProto, encodeJson, encodeProto } from "tinker-ts/wire";
import { expect, it } from "vitest";
import { ForwardBackwardRequestSchema } from "../support/generated/tinker_public_pb.js";

const sequence = { tokens: [7, 8, 9], logprobs: [-1, -2, -3], sequenceId: "s-0" };

const encoded = (datum: Datum) =>
  encodeProto("ForwardBackwardRequest", {
    modelId: "m",
    seqId: 1,
    forwardBackwardInput: { data: [datum], lossFn: "importance_sampling" },
  });

it("a datum of a sample names where its tokens come from", () => {
  const datum = policyDatum([1, 2, 3, 4], sequence, 1, { provenance: true });
  expect(datum.provenance).toEqual({
    modelInput: [
      { kind: "prompt", sequenceId: "s-0", offset: 0, length: 4 },
      { kind: "sampled", sequenceId: "s-0", offset: 0, length: 2 },
    ],
    lossFnInputs: [
      { kind: "prompt", sequenceId: "s-0", offset: 1, length: 3 },
      { kind: "sampled", sequenceId: "s-0", offset: 0, length: 3 },
    ],
  });
});

it("is written as the protobuf of the API has it, and read by servers that skip it", () => {
  const bytes = encoded(policyDatum([1, 2], sequence, 1, { provenance: true }));
  const [datum] = fromBinary(ForwardBackwardRequestSchema, bytes).data;
  const plain = [...datum!.modelInputSpans, ...datum!.lossFnInputSpans].map(({ span }) => [
    span.case,
    span.value?.sequenceId,
    Number(span.value?.offset),
    Number(span.value?.length),
  ]);
  expect(plain).toEqual([
    ["promptTokens", "s-0", 0, 2],
    ["sampledTokens", "s-0", 0, 2],
    ["promptTokens", "s-0", 1, 1],
    ["sampledTokens", "s-0", 0, 3],
  ]);
  const { forwardBackwardInput: read } = decodeProto("ForwardBackwardRequest", bytes);
  expect(read.data[0]!.modelInput.toInts()).toEqual(new Int32Array([1, 2, 7, 8]));
});

it("is left out of JSON, and without a name or the wish for it", () => {
  const datum = policyDatum([1, 2], sequence, 1, { provenance: true });
  expect(JSON.stringify(encodeJson("Datum", datum))).not.toContain("s-0");
  expect(policyDatum([1, 2], sequence, 1).provenance).toBeUndefined();
  const unnamed = { tokens: [7], logprobs: [-1] };
  expect(policyDatum([1], unnamed, 1, { provenance: true }).provenance).toBeUndefined();
});

it.for([
  ["too few positions", { kind: "prompt", sequenceId: "a", length: 1 }, /covers 1 of 3 positions/],
  ["an empty run", { kind: "prompt", sequenceId: "a", length: 0 }, /modelInput\[0\].length/],
  ["no name", { kind: "prompt", sequenceId: "", length: 3 }, /modelInput\[0\].sequenceId/],
  ["a negative offset", { kind: "sampled", sequenceId: "a", offset: -1, length: 3 }, /offset/],
] as const)("refuses %s", ([, span, message]) => {
  const datum = supervisedDatum([1, 2], [3, 4]);
  const provenance: DatumProvenance = { modelInput: [span], lossFnInputs: [span] };
  expect(() => datum.withProvenance(provenance)).toThrow(message);
});
