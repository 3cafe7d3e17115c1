import { expect, it } from "vitest";
import { ManualClock } from "../../test/support/manual-clock.js";
import { Waiters } from "./journal.js";

const never = new AbortController().signal;

it("gives the outcome to all that wait for the same request", async () => {
  const waiters = new Waiters<string>(new ManualClock());
  const polls = [waiters.wait("r", 1000, never), waiters.wait("r", 1000, never)];
  waiters.settle("r", "done");
  expect(await Promise.all(polls)).toEqual(["done", "done"]);
  expect(waiters.count).toBe(0);
});

it("keeps the others waiting when one gives up or its time is over", async () => {
  const clock = new ManualClock();
  const waiters = new Waiters<string>(clock);
  const abort = new AbortController();
  const gaveUp = waiters.wait("r", 1000, abort.signal);
  const tooSlow = waiters.wait("r", 10, never);
  const patient = waiters.wait("r", 1000, never);
  abort.abort();
  await clock.advance(10);
  expect(await Promise.all([gaveUp, tooSlow])).toEqual([undefined, undefined]);
  waiters.settle("r", "done");
  expect(await patient).toBe("done");
  expect(waiters.count).toBe(0);
});

it("does not wait for a client that is already gone", async () => {
  const waiters = new Waiters<string>(new ManualClock());
  expect(await waiters.wait("r", 1000, AbortSignal.abort())).toBeUndefined();
});
