import { ArgumentError, type Datum, type ServiceClient, type Tokenizer } from "tinker-ts";
import {
  badRowsError,
  ConversationDataset,
  loadConversations,
  splitTest,
  type BadRow,
  type DataReport,
  type Dataset,
  type PlacedConversation,
  type RowSource,
} from "../data/index.js";
import { getRenderer, recommendedRenderer, type Renderer } from "../renderers/index.js";
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
  /** The conversations behind `dataset`, in their order. */
  readonly conversations: readonly PlacedConversation[];
  /** Those behind `test`. */
  readonly testConversations: readonly PlacedConversation[];
}

/**
 * Reads, renders and checks all data before anything is trained, so that a row that cannot be used is known
 * at once. Files are read before the server is asked for anything.
 */
export async function prepareData(
  options: DataOptions & {
    readonly service: ServiceClient;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<PreparedData> {
  const {
    data,
    evalData,
    testSize = 0,
    seed = 0,
    batchSize = 128,
    service,
    model,
    signal,
  } = options;
  if (evalData !== undefined && testSize > 0) {
    throw new ArgumentError("testSize", "choose evalData or testSize");
  }
  const loaded = isDataset(data) ? undefined : await loadConversations(data, options);
  const loadedTest =
    evalData === undefined ? undefined : await loadConversations(evalData, options);
  const sampling = await service.createSamplingClient({ baseModel: model, signal });
  const tokenizer = await sampling.getTokenizer({ signal });
  const needsRenderer = loaded !== undefined || loadedTest !== undefined;
  const renderer = needsRenderer ? await chooseRenderer(options, tokenizer) : undefined;
  const contextLength = needsRenderer ? await findContextLength(options) : undefined;
  const split = splitTest(loaded?.conversations ?? [], testSize, seed);
  const rendering = { ...options, renderer: renderer!, contextLength, seed };

  const checked = (conversations: readonly PlacedConversation[], size: number) =>
    checkRows(conversations, { ...rendering, batchSize: size }, options);
  const train = loaded && checked(split.train, batchSize);
  const testRows = loadedTest?.conversations ?? split.test;
  const test = testRows.length === 0 ? undefined : checked(testRows, testRows.length);
  return {
    dataset: train?.dataset ?? (data as Dataset),
    test: test ? test.conversations.flatMap((_, row) => test.dataset.row(row)) : [],
    report: train?.report,
    badRows: [loaded, loadedTest, train, test].flatMap((part) => part?.badRows ?? []),
    renderer,
    tokenizer,
    conversations: train?.conversations ?? [],
    testConversations: test?.conversations ?? [],
  };
}

/** Whether data comes in batches already. */
export function isDataset(data: RowSource | Dataset): data is Dataset {
  return typeof data === "object" && "batchesPerEpoch" in data;
}

type Rendering = ConstructorParameters<typeof ConversationDataset>[1];

/** Renders rows; those of which nothing can be learned are an error, or are left out. */
function checkRows(
  conversations: readonly PlacedConversation[],
  rendering: Rendering,
  { badRows: policy = "fail" }: Pick<DataOptions, "badRows">,
) {
  const dataset = new ConversationDataset(conversations, rendering);
  const report = dataset.inspect();
  if (report.badRows.length === 0) return { dataset, report, conversations, badRows: [] };
  if (policy === "fail") throw badRowsError(report.badRows);
  const bad = new Set(report.badRows.map(({ place }) => place));
  const rest = conversations.filter(({ place = "" }, row) => !bad.has(place || `row ${row + 1}`));
  if (rest.length === 0) throw badRowsError(report.badRows);
  const batchSize = Math.min(rendering.batchSize, rest.length);
  const kept = new ConversationDataset(rest, { ...rendering, batchSize });
  return { dataset: kept, report: kept.inspect(), conversations: rest, badRows: report.badRows };
}

/** The renderer that was given, else the one of that name, else the recommended one. */
async function chooseRenderer(
  { renderer, model }: Pick<DataOptions, "renderer" | "model">,
  tokenizer: Tokenizer,
): Promise<Renderer> {
  if (typeof renderer === "object") return renderer;
  return getRenderer(renderer ?? recommendedRenderer(model, tokenizer), tokenizer, { model });
}

async function findContextLength({
  service,
  model,
  signal,
}: {
  readonly service: ServiceClient;
  readonly model: string;
  readonly signal?: AbortSignal | undefined;
}): Promise<number | undefined> {
  const { supportedModels } = await service.getServerCapabilities({ signal });
  const found = supportedModels.find(({ modelName }) => modelName === model);
  return found?.maxContextLength ?? undefined;
}
