import type { Message, Renderer } from "@tinker-ts/cookbook/renderers";
import type { Rollout } from "tinker-ts/run-log";
import type * as Client from "tinker-ts";

/* Names that snippets of the documentation take for granted, because the text or a snippet before has introduced them. */
declare global {
  const ServiceClient: typeof Client.ServiceClient;
  const SamplingClient: typeof Client.SamplingClient;
  type SamplingClient = Client.SamplingClient;
  const TensorData: typeof Client.TensorData;
  const trainWithRecovery: typeof import("tinker-ts").trainWithRecovery;
  const loadConversations: typeof import("@tinker-ts/cookbook/data").loadConversations;
  const Engine: typeof import("@tinker-ts/engine").Engine;

  const service: Client.ServiceClient;
  const training: Client.TrainingClient;
  const sampling: Client.SamplingClient;
  const rest: Client.RestClient;
  const tokenizer: Client.Tokenizer;
  const engine: import("@tinker-ts/engine").Engine;
  const renderer: Renderer;

  const data: Client.Datum[];
  const batches: Client.Datum[][];
  const modelInput: Client.ModelInput;
  const prompt: number[];
  const prompts: number[][];
  const completion: number[];
  const sequence: Client.SampledSequence;
  const messages: { role: string; content: string }[];
  const conversation: Message[];
  const groups: readonly (readonly Rollout[])[];
  const state: ReturnType<Client.SamplingClient["transfer"]>;
  const target_tokens: number[];
  const weights: number[];

  const baseModel: string;
  const model: string;
  const folder: string;
  const message: string;
  const apiKey: string;
  const statePath: string;
  const turnEnd: number;
  const step: number;
  const reward: number;
  const advantage: number;
  const learningRate: number;
  const body: Uint8Array;
  const config: Record<string, number>;
  const worker: import("node:worker_threads").Worker;
  const stepOf: (path: string) => number;
  const sampleAll: () => Promise<void>;
  const runMyAgent: (client: unknown) => Promise<void>;
  const wandb: { log(metrics: object): void; finish(): void };
}
