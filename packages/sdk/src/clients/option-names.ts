import { boundNames, type OperationOptions } from "../futures/operation.js";
import type {
  DownloadCheckpointOptions,
  DownloadTraceOptions,
  UploadCheckpointOptions,
} from "./rest-options.js";
import type {
  AuditLogOptions,
  BillingUsageOptions,
  ListTrainingRunsOptions,
} from "./rest-options.js";
import type { StreamOptions } from "./sampling-client.js";
import type { SamplingSource } from "./sampling-source.js";
import type {
  CreateFromStateOptions,
  CreateLoraTrainingClientOptions,
  CreateSamplingClientOptions,
} from "./service-client.js";
import type { ServiceClientOptions } from "./service-options.js";
import type { LoadStateOptions, SaveStateOptions, TrainStepOptions } from "./training-options.js";

/** Every name of an options type; the compiler sees to it that none is missing. */
type Names<T> = Readonly<Record<Exclude<keyof T, keyof OperationOptions>, true>>;

const source: Names<SamplingSource> = { modelPath: true, baseModel: true };

/** The options that calls know, for refusing the others. */
export const optionNames = {
  service: [
    "timeoutMs",
    ...keysOf<Omit<ServiceClientOptions, "timeoutMs">>({
      baseUrl: true,
      apiKey: true,
      maxRetries: true,
      defaultHeaders: true,
      defaultQuery: true,
      fetch: true,
      sockets: true,
      dialect: true,
      sideThread: true,
      telemetry: true,
      clock: true,
      random: true,
      env: true,
      logger: true,
      userMetadata: true,
      projectId: true,
      onEvent: true,
    }),
  ],
  createLora: listed<CreateLoraTrainingClientOptions>({
    baseModel: true,
    rank: true,
    seed: true,
    trainMlp: true,
    trainAttn: true,
    trainUnembed: true,
    userMetadata: true,
  }),
  createFromState: listed<CreateFromStateOptions>({
    baseModel: true,
    userMetadata: true,
    weightsAccessToken: true,
  }),
  createSampling: listed<CreateSamplingClientOptions>({ ...source, retryConfig: true }),
  sample: listed<StreamOptions & SamplingSource>({
    ...source,
    prompt: true,
    samplingParams: true,
    numSamples: true,
    includePromptLogprobs: true,
    topkPromptLogprobs: true,
    tokenizer: true,
  }),
  trainStep: listed<TrainStepOptions>({ lossFnConfig: true, adamParams: true }),
  saveState: listed<SaveStateOptions>({ ttlSeconds: true, overwrite: true }),
  loadState: listed<LoadStateOptions>({ weightsAccessToken: true }),
  rest: listed<
    ListTrainingRunsOptions &
      AuditLogOptions &
      BillingUsageOptions &
      DownloadCheckpointOptions &
      DownloadTraceOptions &
      UploadCheckpointOptions
  >({
    limit: true,
    offset: true,
    accessScope: true,
    projectId: true,
    eventType: true,
    day: true,
    startingOn: true,
    endingBefore: true,
    directory: true,
    overwrite: true,
    onProgress: true,
    file: true,
  }),
  bounds: boundNames,
} as const;

function listed<T>(names: Names<T>): readonly string[] {
  return [...keysOf(names), ...boundNames];
}

function keysOf<T>(names: Names<T>): readonly string[] {
  return Object.keys(names);
}
