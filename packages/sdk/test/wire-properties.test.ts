import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeJson,
  decodeProto,
  encodeJson,
  encodeProto,
  parseJson,
  stringifyJson,
  wireTypes,
  type ProtoTypeName,
  type WireTypeName,
  type WireValue,
} from "../src/wire/index.js";
import { valuesOf } from "./support/arbitraries.js";

const typeNames = Object.keys(wireTypes) as WireTypeName[];

describe.each(typeNames)("%s", (typeName) => {
  it("round-trips messages, as a value and as text", () => {
    fc.assert(
      fc.property(valuesOf(wireTypes[typeName].node), (value) => {
        const json = encodeJson(typeName, value as never);
        expect(decodeJson(typeName, json)).toEqual(value);
        expect(decodeJson(typeName, parseJson(stringifyJson(json)))).toEqual(value);
      }),
      { numRuns: 60 },
    );
  });
});

describe("protobuf", () => {
  it("keeps every forward/backward request", () => {
    fc.assert(
      fc.property(trainableRequests(), fc.boolean(), (request, forwardOnly) => {
        const value = { ...request, forwardOnly };
        expect(
          decodeProto("ForwardBackwardRequest", encodeProto("ForwardBackwardRequest", value)),
        ).toEqual(value);
      }),
    );
  });

  it("keeps every sample response with 32-bit logprobs", () => {
    fc.assert(
      fc.property(sampleResponses(), (value) => {
        expect(decodeProto("SampleResponse", encodeProto("SampleResponse", value))).toEqual(value);
      }),
    );
  });

  it("keeps every forward/backward output, ragged and with missing fields", () => {
    fc.assert(
      fc.property(denseOutputs(), (value) => {
        const bytes = encodeProto("ForwardBackwardOutput", value);
        expect(decodeProto("ForwardBackwardOutput", bytes)).toEqual(value);
      }),
    );
  });
});

function generated<N extends ProtoTypeName>(typeName: N): fc.Arbitrary<WireValue<N>> {
  return valuesOf(wireTypes[typeName].node) as fc.Arbitrary<WireValue<N>>;
}

// Cases that protobuf does not distinguish: a missing and an empty config, a missing and a zero seq_id.
function trainableRequests() {
  return generated("ForwardBackwardRequest").map((request) => {
    const { forwardBackwardInput: input } = request;
    const config = input.lossFnConfig;
    return {
      ...request,
      seqId: request.seqId === null ? null : Math.abs(request.seqId % 2 ** 31) || null,
      forwardBackwardInput: {
        ...input,
        lossFnConfig: config && Object.keys(config).length > 0 ? config : null,
        data: input.data.filter(({ modelInput }) =>
          modelInput.chunks.every(
            (chunk) =>
              chunk.type !== "image_asset_pointer" &&
              (chunk.type !== "image" ||
                chunk.expectedTokens === null ||
                (chunk.expectedTokens >= 0 && chunk.expectedTokens < 2 ** 31)),
          ),
        ),
      },
    };
  });
}

function sampleResponses() {
  const single = (value: number) => Math.fround(value) + 0;
  const nonEmpty = <T extends { length: number }>(list: T | null): T | null =>
    list && list.length > 0 ? list : null;
  const rows = (topk: WireValue<"SampleResponse">["topkPromptLogprobs"]) =>
    nonEmpty(
      topk &&
        topk.map((row) =>
          nonEmpty(row && row.map(([id, lp]): [number, number] => [id | 0, single(lp)])),
        ),
    );
  return generated("SampleResponse").map((response): WireValue<"SampleResponse"> => ({
    type: "sample",
    sequences: response.sequences.map(({ stopReason, tokens, logprobs, topkLogprobs }) => ({
      // Others have numbers only, regardless of their names.
      stopReason: stopReason === "stop" ? "stop" : "length",
      tokens,
      logprobs: nonEmpty(logprobs && Float64Array.from(logprobs, Math.fround)),
      topkLogprobs: rows(topkLogprobs),
    })),
    promptLogprobs: nonEmpty(
      response.promptLogprobs && response.promptLogprobs.map((x) => x && single(x)),
    ),
    topkPromptLogprobs: rows(response.topkPromptLogprobs),
    promptCacheHitTokens: Math.abs(response.promptCacheHitTokens % 2 ** 31),
    targetPromptLogprobs: response.targetPromptLogprobs,
    promptAltTokens: response.promptAltTokens && {
      tokens: response.promptAltTokens.tokens,
      logprobs: response.promptAltTokens.logprobs,
    },
  }));
}

function denseOutputs() {
  return generated("ForwardBackwardOutput").map((output): WireValue<"ForwardBackwardOutput"> => {
    const lossFnOutputs = output.lossFnOutputs.map((tensors) =>
      Object.fromEntries(
        Object.entries(tensors)
          .map(([name, tensor]) => [name, tensor.toDense()] as const)
          .filter(([, { shape }]) => shape !== null && !shape.slice(1).includes(0)),
      ),
    );
    const type = output.lossFnOutputType.replaceAll(":", "");
    return {
      lossFnOutputType: lossFnOutputs.length === 0 && type === "" ? "ArrayRecord" : type,
      lossFnOutputs,
      metrics: output.metrics,
    };
  });
}
