import { APIError } from "../errors/api-error.js";
import { hostedBaseUrl } from "../transport/base-url.js";
import type { GetServerCapabilitiesResponse } from "../types/service.js";
import type { Connection } from "./connection.js";

/** Options of a new adapter beside its rank. */
export type AdapterOption = "seed" | "trainMlp" | "trainAttn" | "trainUnembed";

/** What is known of a server beyond what its answers show. */
export interface ServerKind {
  readonly name: string;
  /** Whether what the server answers is that of this kind. */
  readonly isIt: (answers: ServerAnswers) => boolean;
  /** Options of an adapter that it takes; null when that is not known. */
  readonly adapterOptions: readonly AdapterOption[] | null;
  /** Whether it clips gradients; null when that is not known. */
  readonly clipsGradients: boolean | null;
  /** The alpha of every adapter, where it is not the caller's; null when it is not known. */
  readonly alpha: number | null;
  /** Sampling parameters without an effect. */
  readonly ignoredSampling: readonly string[];
  /** Whether a checkpoint can be loaded at any time, or only by the first request of a model. */
  readonly loads: "anytime" | "first" | null;
}

/** What a server answers about itself. */
export interface ServerAnswers {
  readonly baseUrl: string;
  readonly isInside: boolean;
  /** Null when it did not answer. */
  readonly capabilities: GetServerCapabilitiesResponse | null;
  /** Flags of both configurations, by their names on the wire. */
  readonly flags: Readonly<Record<string, unknown>>;
}

const everything = {
  adapterOptions: ["seed", "trainMlp", "trainAttn", "trainUnembed"],
  clipsGradients: true,
  alpha: null,
  ignoredSampling: [],
  loads: "anytime",
} as const;

const unknownKind = {
  adapterOptions: null,
  clipsGradients: null,
  alpha: null,
  ignoredSampling: [],
  loads: null,
} as const;

const has = ({ capabilities }: ServerAnswers, field: string): boolean =>
  capabilities?.unknownFields?.[field] !== undefined;

/**
 * The servers that show by their answers what they are, read in their sources; docs/scale.md has the commits. All
 * other differences are found by what a server answers: its dialect, missing routes, missing parts of results.
 */
export const serverKinds: readonly ServerKind[] = [
  { ...everything, name: "tinker-ts", isIt: (it) => it.isInside || has(it, "sampling_extensions") },
  { ...everything, name: "the hosted service", isIt: ({ baseUrl }) => baseUrl === hostedBaseUrl },
  {
    ...unknownKind,
    name: "SkyRL",
    isIt: (it) => has(it, "supported_loss_fns"),
    adapterOptions: ["seed"],
    clipsGradients: false,
    alpha: 32,
    loads: "first",
  },
  {
    ...unknownKind,
    name: "OpenRL",
    isIt: (it) => has(it, "single_process"),
    ignoredSampling: ["topP", "topK", "stop", "seed"],
  },
  {
    ...unknownKind,
    name: "tinker-cloud",
    isIt: ({ flags }) =>
      flags["sample_use_retrieve_futures"] === true && flags["sample_cancel_enabled"] === true,
  },
  {
    ...unknownKind,
    name: "Miles",
    isIt: ({ capabilities, flags }) =>
      Object.keys(flags).length === 0 &&
      capabilities?.supportedModels[0]?.unknownFields?.["sampleable"] !== undefined,
    adapterOptions: [],
  },
];

/** What a server is that none of the marks fit. */
export const otherServer: ServerKind = {
  ...unknownKind,
  name: "this server",
  isIt: () => true,
};

/** What the server of a connection is; asked once. */
export function serverKindOf(connection: Connection): Promise<ServerKind> {
  const known = connection.shared(newKind);
  return (known.kind ??= findKind(connection));
}

function newKind(): { kind?: Promise<ServerKind> } {
  return {};
}

async function findKind(connection: Connection): Promise<ServerKind> {
  const answers = await askServer(connection);
  return serverKinds.find(({ isIt }) => isIt(answers)) ?? otherServer;
}

/** Asks a server about itself, once: what it does not answer it does not have. */
export async function askServer(connection: Connection): Promise<ServerAnswers> {
  const { api, plan, parts, config, closed } = connection;
  const flags = { ...config.unknownFields, ...parts.dynamicConfig.current.unknownFields };
  const { baseUrl } = plan;
  const isInside = plan.local !== undefined || parts.isInside;
  const isClear = isInside || baseUrl === hostedBaseUrl;
  const capabilities = isClear
    ? null
    : await api
        .call("getServerCapabilities", null, { signal: closed, maxRetries: 2 })
        .catch((error: unknown) => {
          if (error instanceof APIError) return null;
          throw error;
        });
  return { baseUrl, isInside, capabilities, flags };
}
