import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { inOwnRealm } from "./worker-client.js";

it("converts values of another realm to this realm's classes without copying", () => {
  const message = runInNewContext(`({
    kind: "response",
    response: {
      outputs: [{ logprobs: new Float32Array([1, 2, 3]).subarray(1) }, null],
      tensors: new Map([["a", { data: new Int32Array([4]), shape: [1] }]]),
    },
  })`);
  const own = inOwnRealm(message);
  expect(own).toStrictEqual({
    kind: "response",
    response: {
      outputs: [{ logprobs: Float32Array.of(2, 3) }, null],
      tensors: new Map([["a", { data: Int32Array.of(4), shape: [1] }]]),
    },
  });
  expect(own.response.outputs[0].logprobs).toBeInstanceOf(Float32Array);
  expect(own.response.tensors).toBeInstanceOf(Map);
  expect(own.response.outputs[0].logprobs.buffer).toBe(message.response.outputs[0].logprobs.buffer);
});

it("leaves values of this realm unchanged", () => {
  const message = { response: [Float32Array.of(1)] };
  expect(inOwnRealm(message)).toBe(message);
});
