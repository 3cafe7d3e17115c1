// The least that answers like a service; runs in a process of its own. Prints its port.
//   tsx bench/answering-server.ts [milliseconds that a poll is held]
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeProto } from "tinker-ts/wire";

const holdMs = Number(process.argv[2] ?? 0);
const sample = encodeProto("SampleResponse", {
  sequences: [{ stopReason: "length", tokens: new Int32Array(32), logprobs: new Float32Array(32) }],
});
const pass = encodeProto("ForwardBackwardOutput", {
  lossFnOutputType: "TorchLossReturn",
  lossFnOutputs: [],
  metrics: { "loss:sum": 1 },
});
const flags = {
  sample_max_concurrent_requests: 100_000,
  sample_dispatch_bytes_semaphore_size: 2 ** 40,
};

let requests = 0;

const server = createServer((request, response) => {
  // Polls have small bodies of interest; everything else is only drained.
  if (request.url?.endsWith("/retrieve_future")) {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString("latin1")));
    request.on("end", () => answerPoll(body, response));
  } else {
    request.on("data", () => {});
    request.on("end", () => answer(request, response));
  }
});
server.keepAliveTimeout = 60_000;
server.listen({ port: 0, host: "127.0.0.1", backlog: 4096 }, () =>
  console.log((server.address() as AddressInfo).port),
);

function answer(request: IncomingMessage, response: ServerResponse): void {
  const endpoint = request.url?.slice("/api/v1/".length);
  switch (endpoint) {
    case "asample":
      return sendJson(response, { request_id: `sample-${requests++}` });
    case "forward_backward":
      return sendJson(response, { request_id: `pass-${requests++}` });
    case "create_model":
      return sendJson(response, { request_id: "model" });
    case "client/config":
      return sendJson(response, flags);
    case "create_session":
      return sendJson(response, { session_id: "bench" });
    case "create_sampling_session":
      return sendJson(response, { sampling_session_id: "bench:sample:0" });
    default:
      return sendJson(response, {});
  }
}

function answerPoll(request: string, response: ServerResponse): void {
  if (request.includes('"model"')) {
    return sendJson(response, { model_id: "bench:train:0", type: "create_model" });
  }
  const body = request.includes('"pass-') ? pass : sample;
  const send = (): void => {
    response.writeHead(200, {
      "content-type": "application/x-protobuf",
      "content-length": body.byteLength,
    });
    response.end(body);
  };
  if (holdMs === 0) send();
  else setTimeout(send, holdMs);
}

function sendJson(response: ServerResponse, value: unknown): void {
  const text = JSON.stringify(value);
  response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
  response.end(text);
}
