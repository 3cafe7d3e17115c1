import { ArgumentError, type Datum, type ServiceClient, type Tokenizer } from "tinker-ts";
import {
  badRowsError,
  ConversationDataset,
  loadConversations,
  splitTest,
  type BadRow,
  type DataReport,
  type Dataset,
  type DatasetOptions,
  type PlacedConversation,
  type RowSource,
} from "../data/index.js";
import type { Renderer } from "../renderers/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  contentHash,
  enoughEpochs,
  findContextLength,
} from "../runs/index.js";
import { trainOptionNames } from "./option-names.js";
import type { DataOptions } from "./train-options.js";

/** Data that is ready for training. */
export interface PreparedData {
  readonly dataset: Dataset;
  /** Held-out data; empty when there is none. */
  readonly test: readonly Datum[];
  /** The size of the data; undefined for data in batches. */
  readonly report?: DataReport | undefined;
  /** Hash of the rows by their content; undefined for data in batches, which cannot be compared. */
  readonly dataHash?: string | undefined;
  /** Passes over the data: as chosen, or as many as give enough steps. */
  readonly numEpochs?: number | undefined;
  /** Problems of the data that do not stop a run. */
  readonly warnings?: readonly string[] | undefined;
  /** Rows that were left out, with `badRows: "skip"`. */
  readonly badRows: readonly BadRow[];
  readonly renderer?: Renderer | undefined;
  readonly tokenizer: Tokenizer;
  /** Rows per step; undefined for data in batches. */
  readonly batchSize?: number | undefined;
  /** The conversations behind `dataset`, in their order. */
  readonly conversations: readonly PlacedConversation[];
  /** Those behind `test`. */
  readonly testConversations: readonly PlacedConversation[];
  /** The names of the files that the data came from. */
  readonly files: { readonly data?: string | undefined; readonly test?: string | undefined };
}

/** Options of `prepareData`. */
export interface PrepareDataOptions extends DataOptions {
  /** The server of the model, for its tokenizer and its context length. */
  readonly service: ServiceClient;
  /** Weights to start from; their run may have stored its renderer. */
  readonly loadCheckpointPath?: string | undefined;
  /** Passes over the data. @default 1, or as many as give 30 steps; 1 for data in batches */
  readonly numEpochs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads, renders and checks all data before training, so that a bad row is reported at once. Files are read before the
 * first request to the server.
 */
export async function prepareData(options: PrepareDataOptions): Promise<PreparedData> {
  checkOptionNames(options, { ...trainOptionNames, folder: true });
  const { data, evalData, testSize = 0, seed = 0, service, model, signal } = options;
  if (evalData !== undefined && testSize > 0) {
    throw new ArgumentError("testSize", "choose evalData or testSize");
  }
  const loaded = isDataset(data) ? undefined : await loadConversations(data, options);
  const loadedTest =
    evalData === undefined ? undefined : await loadConversations(evalData, options);
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const checkpointPath = options.loadCheckpointPath;
  const isRendered = loaded !== undefined || loadedTest !== undefined;
  const renderer =
    isRendered || typeof options.renderer === "object"
      ? await chooseRenderer({ ...options, tokenizer, checkpointPath })
      : undefined;
  const contextLength = isRendered ? await findContextLength(options) : undefined;
  const split = splitTest(loaded?.conversations ?? [], testSize, seed);
  const rendering = { ...options, renderer: renderer!, contextLength, seed };
  const train = loaded && checkRows(split.train, rendering, options.badRows);
  const testRows = loadedTest?.conversations ?? split.test;
  const test = testRows.length === 0 ? undefined : checkRows(testRows, rendering, options.badRows);
  const { batchSize = defaultBatchSize(train?.rows.length ?? 0) } = options;
  const dataset = train?.dataset.withBatchSize(batchSize) ?? (data as Dataset);
  const { numEpochs = train ? enoughEpochs(dataset.batchesPerEpoch) : 1 } = options;
  return {
    dataset,
    dataHash: loaded && contentHash(loaded.conversations),
    numEpochs,
    warnings: fewRowsWarning(train?.rows.length),
    test: test ? test.rows.flatMap((_, row) => test.dataset.row(row)) : [],
    report: train?.report,
    badRows: [loaded, loadedTest, train, test].flatMap((part) => part?.badRows ?? []),
    renderer,
    tokenizer,
    batchSize: train && batchSize,
    conversations: train?.rows ?? [],
    testConversations: test?.rows ?? [],
    files: { data: nameOf(data), test: nameOf(evalData) },
  };
}

/** A power of two up to 128 that gives an epoch a hundred steps, if there are enough rows. */
export function defaultBatchSize(rows: number): number {
  const size = 2 ** Math.floor(Math.log2(Math.max(1, rows / 100)));
  return Math.min(128, Math.max(size, 4), Math.max(1, rows));
}

/** A warning about a training set of one row. */
export function fewRowsWarning(rows: number | undefined): string[] {
  return rows === 1 ? ["only 1 row is left to train on"] : [];
}

function nameOf(source: unknown): string | undefined {
  return typeof source === "string" ? source : undefined;
}

/** True for data in batches. */
function isDataset(data: RowSource | Dataset): data is Dataset {
  return typeof data === "object" && "batchesPerEpoch" in data;
}

/** True for the result of `prepareData`. */
export function isPrepared(data: RowSource | Dataset | PreparedData): data is PreparedData {
  return typeof data === "object" && "dataset" in data;
}

/** Rendered rows that can be trained on. */
interface CheckedRows {
  readonly rows: readonly PlacedConversation[];
  readonly dataset: ConversationDataset;
  readonly report: DataReport;
  /** Rows that were left out. */
  readonly badRows: readonly BadRow[];
}

/** Renders rows; those without a token to learn are an error, or are left out. */
function checkRows(
  rows: readonly PlacedConversation[],
  rendering: Omit<DatasetOptions, "batchSize">,
  policy: DataOptions["badRows"] = "fail",
): CheckedRows {
  const dataset = new ConversationDataset(rows, { ...rendering, batchSize: 1 });
  const report = dataset.inspect();
  const { badRows } = report;
  if (badRows.length === 0) return { rows, dataset, report, badRows };
  if (policy === "fail" || badRows.length === rows.length) throw badRowsError(badRows);
  const bad = new Set(badRows.map(({ place }) => place));
  const rest = rows.filter(({ place }, row) => !bad.has(place ?? `row ${row + 1}`));
  return { ...checkRows(rest, rendering, "fail"), badRows };
}
