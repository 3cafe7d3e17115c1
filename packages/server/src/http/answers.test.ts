import { expect, it } from "vitest";
import { badRequest } from "../errors/api-error.js";
import { createLogger } from "../log/logger.js";
import { answerErrors } from "./answers.js";

const dataDir = "/home/me/data";

async function answerOf(error: unknown, isAborted = false) {
  const log: string[] = [];
  const logger = createLogger("info", (line) => log.push(line));
  const signal = isAborted ? AbortSignal.abort() : new AbortController().signal;
  const response = await answerErrors({ logger, request: { signal }, dataDir }, async () => {
    throw error;
  });
  return { status: response.status, body: await response.json(), log };
}

it("answers a refusal as it is and logs nothing", async () => {
  expect(await answerOf(badRequest("rank", "must be 1"))).toEqual({
    status: 400,
    body: { error: "rank: must be 1", code: "bad_request" },
    log: [],
  });
});

it("asks for patience when the disk is full", async () => {
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
  const { status, log } = await answerOf(full);
  expect(status).toBe(503);
  expect(log).toHaveLength(1);
});

it("keeps everything else to the log, on one line", async () => {
  const { status, body, log } = await answerOf(new TypeError("secret detail"));
  expect(status).toBe(500);
  expect(JSON.stringify(body)).not.toContain("secret");
  expect(log).toHaveLength(1);
  expect(log[0]).toContain("secret detail");
  expect(log[0]).not.toContain("\n");
});

it("does not show clients the path of the data directory", async () => {
  const { body } = await answerOf(badRequest("path", `${dataDir}/checkpoints/x is torn`));
  expect(body).toMatchObject({ error: "path: checkpoints/x is torn" });
});

it("notes in one quiet line that a client went away, whatever that broke", async () => {
  const { log } = await answerOf(new Error("premature close"), true);
  expect(log).toHaveLength(1);
  expect(log[0]).toContain("info  a client went away");
});
