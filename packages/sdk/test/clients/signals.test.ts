import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import type { FakeService } from "../support/fake-service.js";
import { bare } from "../support/scripted-server.js";
import { serviceTest as it } from "../support/service-test.js";

const folder = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a program until it ends, and sends it signals when it writes a line. */
const run = (service: FakeService, body: string, signals: NodeJS.Signals[] = []) => {
  service.server.handle("finishSession", () => bare(200));
  const program = `import { ServiceClient } from "tinker-ts";
    const url = ${JSON.stringify(service.server.url)};
    const service = new ServiceClient({ baseUrl: url, apiKey: "tml-x", telemetry: false });
    const open = () => service.createSamplingClient({ baseModel: "m" });
    const forever = () => new Promise((resolve) => setTimeout(resolve, 60_000));
    ${body}`;
  return new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      cwd: folder,
      env: { PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "ignore"],
    });
    child.stdout.on("data", () => {
      const signal = signals.shift();
      if (signal) child.kill(signal);
    });
    child.on("close", (code, signal) => resolve({ code, signal }));
  });
};

const reasons = (service: FakeService) =>
  service.server.requestsTo("finishSession").map(({ json }) => json);

it("a signal ends the session as interrupted and then the process as it would have", async ({
  service,
}) => {
  const body = `await open(); console.log("open"); await forever();`;
  expect(await run(service, body, ["SIGTERM"])).toEqual({ code: null, signal: "SIGTERM" });
  expect(reasons(service)).toEqual([{ reason: { type: "interrupted" }, detail: "SIGTERM" }]);
});

it("handlers exist only while a session is open", async ({ service }) => {
  const body = `const count = () => process.listenerCount("SIGINT") + process.listenerCount("SIGTERM");
    const counts = [count()];
    await open();
    counts.push(count());
    await service.close();
    counts.push(count());
    process.exitCode = counts.join() === "0,2,0" ? 0 : 1;`;
  expect(await run(service, body)).toEqual({ code: 0, signal: null });
});

it("a program with a handler of its own decides itself, and its session ends as interrupted", async ({
  service,
}) => {
  const body = `process.on("SIGINT", () => void service.close().then(() => process.exit(3)));
    await open(); console.log("open"); await forever();`;
  expect(await run(service, body, ["SIGINT"])).toEqual({ code: 3, signal: null });
  expect(reasons(service)).toEqual([{ reason: { type: "interrupted" }, detail: "SIGINT" }]);
});

it("an uncaught error still ends the process, with its own exit code", async ({ service }) => {
  const body = `await open(); setTimeout(() => { throw new Error("boom"); }); await forever();`;
  expect(await run(service, body)).toEqual({ code: 1, signal: null });
});

it("an uncaught error that the program survives is the end that is reported", async ({
  service,
}) => {
  const body = `process.on("uncaughtException", () => void service.close());
    await open(); setTimeout(() => { throw new Error("boom"); });`;
  expect(await run(service, body)).toEqual({ code: 0, signal: null });
  expect(reasons(service)).toEqual([{ reason: { type: "errored" }, detail: "boom" }]);
});
