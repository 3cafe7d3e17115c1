import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { drop, hang, json } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const folder = fileURLToPath(new URL("../..", import.meta.url));

/** Heartbeats come after 50 ms instead of ten seconds; everything else has its usual timing. */
const hastyClock = `{
  now: () => performance.now(),
  wallTime: () => Date.now(),
  schedule(durationMs, callback, { keepsAlive = false } = {}) {
    const timer = setTimeout(callback, durationMs === 10_000 ? 50 : durationMs);
    if (!keepsAlive) timer.unref();
    return () => clearTimeout(timer);
  },
}`;

/** Runs a program until it exits. */
const run = (code: string, url: string, flags: readonly string[] = []) =>
  new Promise<{ code: number | null; output: string }>((resolve) => {
    const program = `import { ServiceClient } from "tinker-ts";
      const service = new ServiceClient({
        baseUrl: ${JSON.stringify(url)},
        apiKey: "tml-x",
        clock: ${hastyClock},
        onEvent: ({ type }) => type === "heartbeatFailed" && console.log("held until the timeout"),
      });
      ${code}`;
    const child = spawn(process.execPath, [...flags, "--input-type=module", "--eval", program], {
      cwd: folder,
      env: { PATH: process.env["PATH"] },
    });
    let output = "";
    child.stdout.on("data", (part: Buffer) => (output += part.toString()));
    child.stderr.on("data", (part: Buffer) => (output += part.toString()));
    child.on("close", (exitCode) => resolve({ code: exitCode, output: output.trim() }));
  });

it("a program exits when its client is closed", async ({ service }) => {
  const code = `const sampling = await service.createSamplingClient({ baseModel: "m" });
    const { sequences } = await sampling.sample({ prompt: [1] });
    console.log(sequences.length);
    await service.close();`;
  expect(await run(code, service.server.url)).toEqual({ code: 0, output: "1" });
});

it("a program with flags of V8 samples in a side thread", async ({ service }) => {
  const { url } = service.server;
  const code = `const options = { apiKey: "tml-x", sideThread: true };
    const apart = new ServiceClient({ baseUrl: ${JSON.stringify(url)}, ...options });
    const sampling = await apart.createSamplingClient({ baseModel: "m" });
    const { sequences } = await sampling.sample({ prompt: [1] });
    console.log(sequences.length);
    await apart.close();
    await service.close();`;
  expect(await run(code, url, ["--expose-gc"])).toEqual({ code: 0, output: "1" });
});

it("a program that does not close its client exits too, even while a heartbeat is stuck", async ({
  service,
}) => {
  service.server.handle("sessionHeartbeat", () => hang);
  service.server.handle("telemetry", () => hang);
  // Asking for a step only after the server has seen a heartbeat makes sure that one is under way.
  service.server.handle("optimStep", async () => {
    await service.server.until(() => service.server.requestsTo("sessionHeartbeat").length > 0);
    return service.accept("OptimStepResponse", {});
  });
  const code = `const training = await service.createLoraTrainingClient({ baseModel: "m" });
    await training.optimStep();
    console.log("done");`;
  expect(await run(code, service.server.url)).toEqual({ code: 0, output: "done" });
  expect(service.server.requestsTo("sessionHeartbeat")).toHaveLength(1);
}, 20_000);

it("a program continues after an unobserved future fails", async ({ service }) => {
  service.server.handle("optimStep", () => json({ detail: "no" }, 400));
  const code = `const training = await service.createLoraTrainingClient({ baseModel: "m" });
    const forgotten = training.optimStep();
    for await (const { state } of forgotten) console.log(state);
    await service.close();`;
  expect(await run(code, service.server.url)).toEqual({ code: 0, output: "queued\nfailed" });
});

it("a program that waits for a retry does not exit", async ({ service }) => {
  service.server.script("retrieveFuture", drop("before"));
  const code = `await service.createLoraTrainingClient({ baseModel: "m" });
    console.log("made");`;
  expect(await run(code, service.server.url)).toEqual({ code: 0, output: "made" });
});
