// An HTTP server that does nothing but hand what it is sent to an engine and answer with what comes back: what a server
// cannot do without. Started with the folder of a model; prints its port.
import { createServer } from "node:http";
import { Engine } from "@tinker-ts/engine";

const engine = await Engine.create({ threads: 1 });
const base = await engine.loadModel(process.argv[2]);
const adapter = await base.createAdapter({ rank: 8 });

const calls = {
  forward_backward: ({ data, ...options }) => adapter.forwardBackward(data, options),
  optim_step: (options) => adapter.optimStep(options),
  sample: (request) => base.sample(request),
};

const server = createServer((request, response) => void answer(request, response));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

async function answer(request, response) {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = JSON.parse(Buffer.concat(parts).toString());
  const startMs = performance.now();
  const result = await calls[request.url.slice(1)](body);
  response.setHeader("server-timing", `engine;dur=${performance.now() - startMs}`);
  response.end(
    JSON.stringify(result, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)),
  );
}
