import { APIError } from "../errors/api-error.js";
import type { LoraConfig, OptimStepResponse } from "../types/training.js";
import type { SampleResponse, SamplingParams } from "../types/sampling.js";
import type { Connection } from "./connection.js";
import { serverKindOf, type AdapterOption, type ServerKind } from "./server-kinds.js";
import type { Session } from "./session.js";

/*
 * Some servers take a request and leave a part of it out without a word. What is checked here costs a look at the
 * answer; the server is asked what it is only when there is something to warn of. Every warning is logged once
 * for a connection.
 */

function warnOnce(connection: Connection, text: string): void {
  const said = connection.shared(newTexts);
  if (said.has(text)) return;
  said.add(text);
  connection.runtime.logger.warn(text);
}

function newTexts(): Set<string> {
  return new Set();
}

const adapterOptions = ["seed", "trainMlp", "trainAttn", "trainUnembed"] as const;

/** Warns when a new adapter may not be the one that was asked for. */
export async function checkAdapter(
  session: Session,
  modelId: string,
  lora: LoraConfig,
): Promise<void> {
  const asked = adapterOptions.filter((name) =>
    name === "seed" ? lora.seed !== null && lora.seed !== undefined : !lora[name],
  );
  const kind = await serverKindOf(session);
  const isFaithful = kind.adapterOptions?.length === adapterOptions.length;
  if (isFaithful) return;
  if (asked.length > 0) warnOfOptions(session, kind, asked);
  const rank = await rankOf(session, modelId);
  if (rank === null || rank === lora.rank) return;
  session.runtime.logger.warn(
    `${modelId}: rank ${lora.rank} was asked for, and ${kind.name} reports ${rank}; it may have one rank for all adapters`,
  );
}

function warnOfOptions(
  session: Session,
  { name, adapterOptions: taken }: ServerKind,
  asked: readonly AdapterOption[],
): void {
  if (taken === null) {
    const what = asked.join(", ");
    warnOnce(session, `nothing that ${name} answers shows whether it takes ${what} of an adapter`);
    return;
  }
  const ignored = asked.filter((option) => !taken.includes(option));
  if (ignored.length === 0) return;
  const layers = ignored.some((option) => option !== "seed");
  const effect = layers ? "the layers are not those that were asked for" : "runs differ";
  warnOnce(session, `${name} ignores ${ignored.join(", ")} of an adapter: ${effect}`);
}

async function rankOf(session: Session, modelId: string): Promise<number | null> {
  try {
    const { loraRank } = await session.api.call(
      "getInfo",
      { modelId },
      { signal: session.closed, maxRetries: 0 },
    );
    return loraRank;
  } catch (error) {
    if (error instanceof APIError) return null;
    throw error;
  }
}

const normMetric = /grad[_ ]?norm|clip/i;

/** Warns when gradients were to be clipped and nothing shows that they were. */
export async function checkClipping(
  connection: Connection,
  gradClipNorm: number,
  { metrics }: OptimStepResponse,
): Promise<void> {
  const shows = Object.keys(metrics ?? {}).some((name) => normMetric.test(name));
  const { name, clipsGradients } = await serverKindOf(connection);
  if (clipsGradients === true || (clipsGradients === null && shows)) return;
  const why =
    clipsGradients === false
      ? `${name} does not read it`
      : "no norm of the gradients is among the metrics of the step";
  warnOnce(connection, `gradClipNorm ${gradClipNorm} may have no effect: ${why}`);
}

/** Warns when a server ended a sample at a limit of its own. */
export async function noteCutSamples(
  connection: Connection,
  { sequences }: SampleResponse,
): Promise<void> {
  const cut = sequences.find(({ stopReason }) => stopReason === "length");
  if (!cut) return;
  const { name } = await serverKindOf(connection);
  if (name === "tinker-ts" || name === "the hosted service") return;
  warnOnce(
    connection,
    `${name} ended a sample after ${cut.tokens.length} tokens: without maxTokens it has a limit of its own; set maxTokens`,
  );
}

/** Warns of sampling parameters that the server is known to ignore. */
export async function checkSampling(connection: Connection, params: SamplingParams): Promise<void> {
  const { name, ignoredSampling } = await serverKindOf(connection);
  const given = [
    params.seed !== null && "seed",
    params.stop !== null && "stop",
    params.topK > 0 && "topK",
    params.topP !== 1 && "topP",
  ].filter((option) => option !== false);
  const ignored = given.filter((option) => ignoredSampling.includes(option));
  if (ignored.length > 0) {
    warnOnce(connection, `${name} ignores ${ignored.join(", ")} of samplingParams`);
  }
}
