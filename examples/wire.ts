// Writes one training request in both forms of the wire and reads it back.
import assert from "node:assert/strict";
import { Datum } from "tinker-ts";
import { decodeProto, encodeJson, encodeProto, stringifyJson } from "tinker-ts/wire";

const datum = new Datum({
  modelInput: [5, 8, 13, 21],
  lossFnInputs: { target_tokens: [8, 13, 21, 34], weights: [0, 1, 1, 1] },
});
const request = {
  modelId: "demo:train:0",
  seqId: 1,
  forwardBackwardInput: { data: [datum], lossFn: "cross_entropy" as const },
};

const json = stringifyJson(encodeJson("ForwardBackwardRequest", request));
const proto = encodeProto("ForwardBackwardRequest", request);
console.log(`JSON, ${json.length} bytes:\n${json}\n`);
console.log(`protobuf, ${proto.length} bytes:\n${Buffer.from(proto).toString("hex")}\n`);

const again = decodeProto("ForwardBackwardRequest", proto);
assert.deepEqual(again.forwardBackwardInput.data, [datum]);
console.log("Read back: the same request.");
