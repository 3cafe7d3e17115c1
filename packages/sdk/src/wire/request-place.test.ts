import { expect, it } from "vitest";
import { encodeProto } from "./proto-codec.js";
import { readRequestPlace } from "./request-place.js";

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

it("finds the place of a request despite other errors", () => {
  const place = { modelId: "m", seqId: 7 };
  const body = { model_id: "m", seq_id: 7, loss_fn: 1, more: [] };
  expect(readRequestPlace(json(body), "json")).toEqual(place);
  const proto = encodeProto("ForwardBackwardRequest", {
    ...place,
    forwardBackwardInput: { data: [], lossFn: "cross_entropy", lossFnConfig: null },
  });
  // A name of the same length keeps the message whole, and is no loss.
  const other = Buffer.from(proto);
  other.write("entropy_cross", other.indexOf("cross_entropy"));
  expect(readRequestPlace(other, "proto")).toEqual(place);
});

it.each([
  ["no JSON", Buffer.from("{")],
  ["no object", json(null)],
  ["no model", json({ seq_id: 1 })],
  ["a model without a name", json({ model_id: "", seq_id: 1 })],
  ["no number", json({ model_id: "m" })],
  ["a number that creates the model", json({ model_id: "m", seq_id: 0 })],
  ["half a number", json({ model_id: "m", seq_id: 1.5 })],
  ["a number in quotes", json({ model_id: "m", seq_id: "1" })],
])("finds none where there is %s", (_, bytes) => {
  expect(readRequestPlace(bytes, "json")).toBeUndefined();
});

it("finds none in bytes that are not protobuf", () => {
  expect(readRequestPlace(Buffer.from([0xff, 0xff]), "proto")).toBeUndefined();
});
