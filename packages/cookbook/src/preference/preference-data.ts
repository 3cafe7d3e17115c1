import { ArgumentError, type Datum, type ServiceClient, type Tokenizer } from "tinker-ts";
import {
  badRowsError,
  countTrained,
  DataError,
  loadRows,
  shuffledBatch,
  splitTest,
  toDatum,
  type BadRow,
  type Dataset,
  type Placed,
  type RowOptions,
  type RowSource,
} from "../data/index.js";
import type { Message, Renderer } from "../renderers/index.js";
import { chooseRenderer, findContextLength } from "../runs/index.js";
import { defaultBatchSize } from "../supervised/index.js";
import {
  judgedOf,
  toComparison,
  toJudged,
  toPair,
  type JudgedCompletion,
  type LabeledComparison,
} from "./comparison.js";

/** What is preferred, and how it becomes batches. */
export interface PreferenceDataOptions extends RowOptions {
  /** The name of a model that the server supports. */
  readonly model: string;
  /**
   * Rows: a file (JSONL, JSON, CSV, Parquet), a list, a stream. Comparisons (prompt + chosen + rejected,
   * chosen + rejected, comparison + label, prompt + completion_a + completion_b + label); a loss on single
   * completions also takes prompt + completion + label.
   */
  readonly data: RowSource;
  /** Turns a row into a comparison; undefined leaves the row out. @default the known forms */
  readonly map?: ((row: never) => LabeledComparison | undefined) | undefined;
  /** Rows that are not trained; what the loss says of them is told as `test/…`. */
  readonly evalData?: RowSource | undefined;
  /** Takes this many rows out of `data` instead. @default 0 */
  readonly testSize?: number | undefined;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Comparisons, or single completions, per step. @default up to 128, so that a run has a hundred steps */
  readonly batchSize?: number | undefined;
  /** Longest sequence; what is beyond is cut off. @default what the model takes */
  readonly maxLength?: number | undefined;
  /** Decides the order of rows and the adapter's first weights. @default 0 */
  readonly seed?: number | undefined;
}

/** How preferences are prepared. */
export interface PreparePreferencesOptions extends PreferenceDataOptions {
  /** Where the model is; asked for its tokenizer and its longest context. */
  readonly service: ServiceClient;
  /** Whether rows are single completions instead of pairs. @default false */
  readonly unpaired?: boolean | undefined;
  /** Weights to begin with; their run may tell the renderer. */
  readonly loadCheckpointPath?: string | undefined;
  /** How often the data is gone through; decides the batch size where none is given. @default 1 */
  readonly numEpochs?: number | undefined;
  /** Gives the work up. */
  readonly signal?: AbortSignal | undefined;
}

/** Data to compare: a chosen and a rejected datum, or one datum that is wanted or not. */
export interface PreferenceRow extends Placed {
  /** What both answer. */
  readonly prompt: readonly Message[];
  /** The chosen datum and the rejected one; or the only one. */
  readonly data: readonly Datum[];
  /** Of each datum, whether it is wanted. */
  readonly desirable: readonly boolean[];
}

/** What there is to learn. */
export interface PreferenceReport {
  /** Comparisons, or single completions. */
  readonly rows: number;
  /** Comparisons that nobody won; they are left out. */
  readonly ties: number;
  /** Positions that the model reads in an epoch. */
  readonly tokens: number;
  /** Tokens of completions. */
  readonly trainedTokens: number;
  /** Rows that were cut to `maxLength`. */
  readonly truncatedRows: number;
}

/** Preferences that are ready to be trained on. */
export interface PreparedPreferences {
  /** In batches. */
  readonly dataset: PreferenceDataset;
  /** Rows that are not trained; empty when there are none. */
  readonly test: readonly PreferenceRow[];
  /** What there is to learn. */
  readonly report: PreferenceReport;
  /** Rows that were left out, with `badRows: "skip"`. */
  readonly badRows: readonly BadRow[];
  /** The chat format. */
  readonly renderer: Renderer;
  /** The model's tokenizer. */
  readonly tokenizer: Tokenizer;
  /** Rows per step. */
  readonly batchSize: number;
  /** The names of the files, where the data came from some. */
  readonly files: { readonly data?: string | undefined; readonly test?: string | undefined };
}

/** Preferences in batches, shuffled anew for every epoch. */
export class PreferenceDataset implements Dataset {
  /** Full batches of an epoch. */
  readonly batchesPerEpoch: number;
  /** All rows, in their original order. */
  readonly rows: readonly PreferenceRow[];
  readonly #batchSize: number;
  readonly #seed: number;

  constructor(rows: readonly PreferenceRow[], options: { batchSize: number; seed?: number }) {
    const { batchSize, seed = 0 } = options;
    if (rows.length < batchSize) {
      throw new ArgumentError(
        "batchSize",
        `${batchSize} is more than the ${rows.length} rows there are`,
      );
    }
    this.rows = rows;
    this.#batchSize = batchSize;
    this.#seed = seed;
    this.batchesPerEpoch = Math.floor(rows.length / batchSize);
  }

  /** The rows of a batch. */
  rowsOf(epoch: number, batch: number): readonly PreferenceRow[] {
    const [batchSize, seed] = [this.#batchSize, this.#seed];
    return shuffledBatch(this.rows, { batchSize, seed, epoch, index: batch });
  }

  /** The data of a batch: of each row the chosen one before the rejected one. */
  batch(epoch: number, batch: number): readonly Datum[] {
    return this.rowsOf(epoch, batch).flatMap(({ data }) => data);
  }
}

interface Candidate extends Placed {
  readonly prompt: readonly Message[];
  readonly completions: readonly (readonly Message[])[];
  readonly desirable: readonly boolean[];
}

/** Reads, renders and checks all preferences before anything is trained. */
export async function preparePreferences(
  options: PreparePreferencesOptions,
): Promise<PreparedPreferences> {
  const { data, evalData, testSize = 0, seed = 0, service, model, signal } = options;
  if (evalData !== undefined && testSize > 0) {
    throw new ArgumentError("testSize", "choose evalData or testSize");
  }
  const loaded = await loadCandidates(data, options);
  const loadedTest = evalData === undefined ? undefined : await loadCandidates(evalData, options);
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const checkpointPath = options.loadCheckpointPath;
  const renderer = await chooseRenderer({ ...options, tokenizer, checkpointPath });
  const contextLength = await findContextLength(options);
  const split = splitTest(loaded.candidates, testSize, seed);
  const rendering = { renderer, contextLength, maxLength: options.maxLength };
  const train = renderAll(split.train, rendering, options.badRows);
  const test = renderAll(loadedTest?.candidates ?? split.test, rendering, options.badRows);
  const { batchSize = defaultBatchSize(train.rows.length, options.numEpochs) } = options;
  const all = train.rows.flatMap((row) => row.data);
  return {
    dataset: new PreferenceDataset(train.rows, { batchSize, seed }),
    test: test.rows,
    report: {
      rows: train.rows.length,
      ties: loaded.ties,
      tokens: all.reduce((sum, { modelInput }) => sum + modelInput.length, 0),
      trainedTokens: all.reduce((sum, datum) => sum + countTrained(datum), 0),
      truncatedRows: train.truncatedRows,
    },
    badRows: [loaded, loadedTest, train, test].flatMap((part) => part?.badRows ?? []),
    renderer,
    tokenizer,
    batchSize,
    files: { data: nameOf(data), test: nameOf(evalData) },
  };
}

async function loadCandidates(
  source: RowSource,
  options: PreparePreferencesOptions,
): Promise<{ candidates: Candidate[]; ties: number; badRows: readonly BadRow[] }> {
  const { map, unpaired = false } = options;
  const read = (row: never): { readonly found: readonly Candidate[] } | undefined => {
    const own = map?.(row);
    if (map && !own) return undefined;
    const found = unpaired
      ? (own ? judgedOf(own) : toJudged(row)).map(singleOf)
      : [toPair(own ?? toComparison(row))].flatMap((pair) => (pair ? [pairOf(pair)] : []));
    return { found };
  };
  const { rows, badRows } = await loadRows(source, read, options, "comparisons");
  const candidates = rows.flatMap(({ found, place }) => found.map((row) => ({ ...row, place })));
  const ties = rows.filter(({ found }) => found.length === 0).length;
  if (candidates.length === 0) throw new DataError("has ties only", { place: nameOf(source) });
  return { candidates, ties, badRows };
}

function singleOf({ prompt, completion, desirable }: JudgedCompletion): Candidate {
  return { prompt, completions: [completion], desirable: [desirable] };
}

function pairOf({ prompt, chosen, rejected }: NonNullable<ReturnType<typeof toPair>>): Candidate {
  return { prompt, completions: [chosen, rejected], desirable: [true, false] };
}

interface Rendering {
  readonly renderer: Renderer;
  readonly contextLength: number | undefined;
  readonly maxLength: number | undefined;
}

function renderAll(
  candidates: readonly Candidate[],
  rendering: Rendering,
  policy: RowOptions["badRows"] = "fail",
): { rows: PreferenceRow[]; badRows: BadRow[]; truncatedRows: number } {
  const rows: PreferenceRow[] = [];
  const badRows: BadRow[] = [];
  let truncatedRows = 0;
  for (const [index, { prompt, completions, desirable, place }] of candidates.entries()) {
    try {
      const rendered = completions.map((completion) => render(prompt, completion, rendering));
      rows.push({ prompt, data: rendered.map(({ datum }) => datum), desirable, place });
      if (rendered.some(({ isCut }) => isCut)) truncatedRows++;
    } catch (error) {
      const problem = error instanceof DataError ? error.problem : (error as Error).message;
      badRows.push({ place: place ?? `row ${index + 1}`, problem });
    }
  }
  const isHopeless = candidates.length > 0 && rows.length === 0;
  if (badRows.length > 0 && (policy === "fail" || isHopeless)) throw badRowsError(badRows);
  return { rows, badRows, truncatedRows };
}

/** One completion behind its prompt; all its answers count, every token the same. */
function render(
  prompt: readonly Message[],
  completion: readonly Message[],
  { renderer, contextLength = Number.POSITIVE_INFINITY, maxLength }: Rendering,
): { readonly datum: Datum; readonly isCut: boolean } {
  const example = renderer.buildSupervisedExample(
    [
      ...prompt.map((message) => ({ ...message, trainable: false })),
      ...completion.map((message) => ({ ...message, trainable: message.role === "assistant" })),
    ],
    "customized",
  );
  const { length } = example.input;
  if (maxLength === undefined && length - 1 > contextLength) {
    throw new DataError(
      `has ${length} tokens, but the model takes ${contextLength}; set a maximal length to cut it`,
    );
  }
  const datum = toDatum(example, { maxLength, reduction: "none" });
  const isCut = length > (maxLength ?? length);
  if (countTrained(datum) === 0) {
    const where = isCut ? ` within its first ${maxLength}` : "";
    throw new DataError(`has a completion with no token to learn${where}`);
  }
  return { datum, isCut };
}

function nameOf(source: unknown): string | undefined {
  return typeof source === "string" ? source : undefined;
}
