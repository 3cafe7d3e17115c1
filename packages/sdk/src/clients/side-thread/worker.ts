import { parentPort } from "node:worker_threads";
import type { ApiFuture } from "../../futures/api-future.js";
import { yieldToEventLoop } from "../../runtime/yield-to-event-loop.js";
import type { SampleOptions, SamplingClient } from "../sampling-client.js";
import { receiveSamplingClient } from "../sampling/receive-sampling-client.js";
import { recordError } from "./error-record.js";
import type { SampleResponse } from "../../types/sampling.js";
import type { PostedSample, SideAnswer, SideCall, SideRequest } from "./messages.js";

/** Calls that are begun before other events get their turn. */
const callsPerTurn = 16;

const port = parentPort!;
const targets = new Map<number, Promise<SamplingClient>>();
const running = new Map<number, ApiFuture<unknown>>();
const intake: Extract<SideRequest, { type: "call" }>[] = [];
let isTakingIn = false;

port.on("message", (request: SideRequest) => {
  switch (request.type) {
    case "register":
      targets.set(request.targetId, receiveSamplingClient(request.state, {}));
      break;
    case "drop":
      void drop(request.callId, request.targetId);
      break;
    case "cancel":
      running.get(request.callId)?.cancel();
      break;
    case "call":
      intake.push(request);
      void takeIn();
  }
});
answer({ type: "ready" });

async function takeIn(): Promise<void> {
  if (isTakingIn) return;
  isTakingIn = true;
  while (intake.length > 0) {
    for (const { callId, targetId, call } of intake.splice(0, callsPerTurn)) {
      void run(callId, targetId, call);
    }
    await yieldToEventLoop();
  }
  isTakingIn = false;
}

async function run(callId: number, targetId: number, call: SideCall): Promise<void> {
  try {
    const client = await targets.get(targetId);
    if (!client) throw new Error("the sampling client was closed");
    const future = begin(client, call);
    running.set(callId, future);
    const value = await future;
    answer({ type: "result", callId, value: call.method === "sample" ? posted(value) : value });
  } catch (error) {
    answer({ type: "error", callId, error: recordError(error) });
  } finally {
    running.delete(callId);
  }
}

function posted(value: unknown): PostedSample {
  const response = value as SampleResponse;
  return { ...response, sequenceIds: response.sequences.map(({ sequenceId }) => sequenceId) };
}

async function drop(callId: number, targetId: number): Promise<void> {
  const target = targets.get(targetId);
  targets.delete(targetId);
  await (await target)?.close();
  answer({ type: "result", callId, value: null });
}

function begin(client: SamplingClient, call: SideCall): ApiFuture<unknown> {
  return call.method === "sample"
    ? client.sample(call.options as SampleOptions)
    : client.computeLogprobs(call.prompt as SampleOptions["prompt"], call.options);
}

function answer(message: SideAnswer): void {
  port.postMessage(message);
}
