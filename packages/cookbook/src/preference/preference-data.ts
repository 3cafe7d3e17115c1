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
import { textOf, type Message, type Renderer } from "../renderers/index.js";
import {
  checkOptionNames,
  chooseRenderer,
  contentHash,
  enoughEpochs,
  findContextLength,
} from "../runs/index.js";
import { defaultBatchSize, fewRowsWarning } from "../supervised/index.js";
import { preferenceOptionNames } from "./option-names.js";
import {
  judgedOf,
  toComparison,
  toJudged,
  toPair,
  type JudgedCompletion,
  type LabeledComparison,
} from "./comparison.js";

/** The preferences to train on, and how they become batches. */
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
  /** Rows to evaluate on; their loss and its metrics are logged as `test/…`. */
  readonly evalData?: RowSource | undefined;
  /** The number of rows of `data` to hold out for evaluation instead. @default 0 */
  readonly testSize?: number | undefined;
  /** The chat format: a renderer or its name. @default the one recommended for the model */
  readonly renderer?: Renderer | string | undefined;
  /** Comparisons, or single completions, per step. @default up to 128, so that an epoch has a hundred steps */
  readonly batchSize?: number | undefined;
  /** The maximum length of a sequence in tokens; longer ones are cut. @default the model's context length */
  readonly maxLength?: number | undefined;
  /** Random seed for data order and initial weights. @default 0 */
  readonly seed?: number | undefined;
}

/** Options of `preparePreferences`. */
export interface PreparePreferencesOptions extends PreferenceDataOptions {
  /** The server of the model, for its tokenizer and its context length. */
  readonly service: ServiceClient;
  /** Whether rows are single completions instead of pairs. @default false */
  readonly unpaired?: boolean | undefined;
  /** Weights to start from; their run may have stored its renderer. */
  readonly loadCheckpointPath?: string | undefined;
  /** Passes over the data. @default 1, or as many as give 30 steps */
  readonly numEpochs?: number | undefined;
  /** Aborts the preparation. */
  readonly signal?: AbortSignal | undefined;
}

/** Data to compare: a chosen and a rejected datum, or a single desirable or undesirable one. */
export interface PreferenceRow extends Placed {
  /** The prompt of both completions. */
  readonly prompt: readonly Message[];
  /** The chosen datum and the rejected one; or the only one. */
  readonly data: readonly Datum[];
  /** For each datum, true for a desirable one. */
  readonly desirable: readonly boolean[];
}

/** The size of the data. */
export interface PreferenceReport {
  /** Comparisons, or single completions. */
  readonly rows: number;
  /** Ties, which are left out. */
  readonly ties: number;
  /** Positions that the model reads in an epoch. */
  readonly tokens: number;
  /** Tokens of completions. */
  readonly trainedTokens: number;
  /** Rows that were cut to `maxLength`. */
  readonly truncatedRows: number;
}

/** Preferences that are ready for training. */
export interface PreparedPreferences {
  /** The training rows in batches. */
  readonly dataset: PreferenceDataset;
  /** Held-out rows; empty when there are none. */
  readonly test: readonly PreferenceRow[];
  /** The size of the data. */
  readonly report: PreferenceReport;
  /** Rows that were left out, with `badRows: "skip"`. */
  readonly badRows: readonly BadRow[];
  /** The chat format. */
  readonly renderer: Renderer;
  /** The model's tokenizer. */
  readonly tokenizer: Tokenizer;
  /** Rows per step. */
  readonly batchSize: number;
  /** Hash of the rows by their content. */
  readonly dataHash?: string | undefined;
  /** Passes over the data: as chosen, or as many as give enough steps. */
  readonly numEpochs?: number | undefined;
  /** Problems of the data that do not stop a run. */
  readonly warnings?: readonly string[] | undefined;
  /** The names of the files that the data came from. */
  readonly files: { readonly data?: string | undefined; readonly test?: string | undefined };
}

/** Preferences in batches, in another order every epoch. */
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
        `${batchSize} exceeds the number of rows (${rows.length})`,
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

  /** The data of a batch: for each row the chosen one before the rejected one. */
  batch(epoch: number, batch: number): readonly Datum[] {
    return this.rowsOf(epoch, batch).flatMap(({ data }) => data);
  }
}

interface Candidate extends Placed {
  readonly prompt: readonly Message[];
  readonly completions: readonly (readonly Message[])[];
  readonly desirable: readonly boolean[];
}

/** Reads, renders and checks all preferences before training. */
export async function preparePreferences(
  options: PreparePreferencesOptions,
): Promise<PreparedPreferences> {
  checkOptionNames(options, { ...preferenceOptionNames, folder: true });
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
  const { batchSize = defaultBatchSize(train.rows.length) } = options;
  const all = train.rows.flatMap((row) => row.data);
  const dataset = new PreferenceDataset(train.rows, { batchSize, seed });
  return {
    dataset,
    dataHash: contentHash(loaded.candidates),
    numEpochs: options.numEpochs ?? enoughEpochs(dataset.batchesPerEpoch),
    warnings: fewRowsWarning(train.rows.length),
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
  if (candidates.length === 0) throw new DataError("only ties", { place: nameOf(source) });
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
      checkCompletions(completions, rendered);
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

/** Refuses empty completions, and pairs that are the same after rendering and cutting. */
function checkCompletions(
  completions: readonly (readonly Message[])[],
  rendered: readonly { readonly datum: Datum }[],
): void {
  const isEmpty = ({ role, content, toolCalls }: Message): boolean =>
    role === "assistant" && !toolCalls?.length && textOf({ content }).trim() === "";
  if (completions.some((completion) => completion.some(isEmpty))) {
    throw new DataError("a completion is empty");
  }
  const [first, second] = rendered.map(({ datum: { modelInput, lossFnInputs } }) =>
    JSON.stringify([modelInput, Number(lossFnInputs["target_tokens"]!.data.at(-1))]),
  );
  if (first === second) {
    throw new DataError("both completions are the same after rendering and cutting");
  }
}

/** One completion after its prompt; every token of its answers has the same weight. */
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
      `${length} tokens exceed the model's context length (${contextLength}); set maxLength to cut the row`,
    );
  }
  const datum = toDatum(example, { maxLength, reduction: "none" });
  const isCut = length > (maxLength ?? length);
  if (countTrained(datum) === 0) {
    const where = isCut ? ` within its first ${maxLength}` : "";
    throw new DataError(`a completion has no token to learn${where}`);
  }
  return { datum, isCut };
}

function nameOf(source: unknown): string | undefined {
  return typeof source === "string" ? source : undefined;
}
