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
import { chooseRenderer, findContextLength } from "../runs/index.js";
import type { DataOptions } from "./train-options.js";

/** Data that is ready to be trained on. */
export interface PreparedData {
  readonly dataset: Dataset;
  /** Data that is not trained; empty when there is none. */
  readonly test: readonly Datum[];
  /** What there is to learn; undefined for data that came in batches. */
  readonly report?: DataReport | undefined;
  /** Rows that were left out, with `badRows: "skip"`. */
  readonly badRows: readonly BadRow[];
  readonly renderer?: Renderer | undefined;
  readonly tokenizer: Tokenizer;
  /** Rows per step; undefined for data that came in batches. */
  readonly batchSize?: number | undefined;
  /** The conversations behind `dataset`, in their order. */
  readonly conversations: readonly PlacedConversation[];
  /** Those behind `test`. */
  readonly testConversations: readonly PlacedConversation[];
  /** The names of the files, where the data came from some. */
  readonly files: { readonly data?: string | undefined; readonly test?: string | undefined };
}

/** How data is prepared. */
export interface PrepareDataOptions extends DataOptions {
  /** Where the model is; asked for its tokenizer and its longest context. */
  readonly service: ServiceClient;
  /** Weights to begin with; their run may tell the renderer. */
  readonly loadCheckpointPath?: string | undefined;
  /** How often the data is gone through; decides the batch size where none is given. @default 1 */
  readonly numEpochs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads, renders and checks all data before anything is trained, so that a row that cannot be used is known
 * at once. Files are read before the server is asked for anything.
 */
export async function prepareData(options: PrepareDataOptions): Promise<PreparedData> {
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
  const { batchSize = defaultBatchSize(train?.rows.length ?? 0, options.numEpochs) } = options;
  return {
    dataset: train?.dataset.withBatchSize(batchSize) ?? (data as Dataset),
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

/** A power of two up to 128 with which a run has a hundred steps, if there are enough rows. */
export function defaultBatchSize(rows: number, numEpochs = 1): number {
  const size = 2 ** Math.floor(Math.log2(Math.max(1, (rows * numEpochs) / 100)));
  return Math.min(128, Math.max(size, 4), Math.max(1, rows));
}

function nameOf(source: unknown): string | undefined {
  return typeof source === "string" ? source : undefined;
}

/** Whether data comes in batches already. */
function isDataset(data: RowSource | Dataset): data is Dataset {
  return typeof data === "object" && "batchesPerEpoch" in data;
}

/** Whether data has been prepared. */
export function isPrepared(data: RowSource | Dataset | PreparedData): data is PreparedData {
  return typeof data === "object" && "dataset" in data;
}

/** Rows that can be learned from, rendered. */
interface CheckedRows {
  readonly rows: readonly PlacedConversation[];
  readonly dataset: ConversationDataset;
  readonly report: DataReport;
  /** Rows that were left out. */
  readonly badRows: readonly BadRow[];
}

/** Renders rows; those of which nothing can be learned are an error, or are left out. */
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
