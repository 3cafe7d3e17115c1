import { expect, it } from "vitest";
import { badRequest } from "../errors/api-error.js";
import { createLogger } from "../log/logger.js";
import { answerErrors } from "./error-answers.js";

async function answerOf(error: unknown): Promise<{ status: number; body: unknown; log: string[] }> {
  const log: string[] = [];
  const logger = createLogger("error", (line) => log.push(line));
  const response = await answerErrors(logger, async () => {
    throw error;
  });
  return { status: response.status, body: await response.json(), log };
}

it("tells a refusal as it is and logs nothing", async () => {
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
