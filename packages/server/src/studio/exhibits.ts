import type {
  StudioExhibit,
  StudioExhibitDetail,
  StudioExhibitKind,
  StudioExhibits,
  StudioMessage,
  StudioNumber,
  StudioTokens,
} from "tinker-ts/wire";
import type { Core } from "../core.js";
import type { ModelText } from "../engine-host/model-text.js";
import { badRequest, gone, notFound } from "../errors/api-error.js";
import {
  unpackExhibit,
  type ExhibitContent,
  type ExhibitHead,
} from "../recording/data-exhibits.js";
import { toNumber, toPlain } from "../store/sql.js";
import { readContent } from "../store/content.js";
import type { ExhibitBatch } from "../store/exhibits-table.js";
import type { LogRecord } from "../store/logs-table.js";
import type { FolderExhibit } from "./folder-exhibits.js";
import type { LogFolders } from "./log-folders.js";
import { baseModelNames, configText } from "./run-rows.js";
import type { Studio } from "./studio.js";

/** Which exhibits are wanted. */
export interface ExhibitsQuery {
  readonly run: string;
  /** Null for the last step that has some. */
  readonly step: number | null;
  readonly kind: StudioExhibitKind;
  readonly split: string | null;
  readonly group: number | null;
  readonly order: string;
  readonly text: string;
  readonly cursor: number;
  readonly limit: number;
}

/** One exhibit, wherever it is kept. */
interface Entry {
  readonly id: string;
  readonly place: Pick<StudioExhibit, "run" | "step" | "kind" | "split" | "at">;
  readonly head: ExhibitHead;
  /** The run, for the tokenizers of its models. */
  readonly logId: string;
  readonly modelId: string | null;
  readonly content: () => Promise<ExhibitContent>;
  /** The line of a file that it comes from. */
  readonly raw?: unknown;
}

const previewTokens = 80;
const previewLength = 200;
const pageTokens = 4000;
const maxTextTokens = 250_000;
/** Tokens that are decoded before others may have a turn. */
const tokensPerStep = 64;

/** Data, rollouts and samples that were kept, with their tokens as text. */
export class Exhibits {
  readonly #core: Core;
  readonly #studio: Studio;
  readonly #folders: LogFolders;

  constructor(core: Core, studio: Studio, folders: LogFolders) {
    this.#core = core;
    this.#studio = studio;
    this.#folders = folders;
  }

  async list(owner: string, query: ExhibitsQuery): Promise<StudioExhibits> {
    const log = this.#studio.owned(owner, query.run);
    await this.#core.context.recorder.exhibits.settled();
    const source = log.source === "folder" ? await this.#inFolder(query) : this.#stored(log, query);
    const { entries, steps, splits, seen } = source;
    const meant = entries.filter(({ head }) => query.group === null || head.group === query.group);
    const ordered = inOrder(meant, query.order);
    const isMeant = (row: StudioExhibit): boolean =>
      row.preview.toLowerCase().includes(query.text.toLowerCase());
    // Without a search only what is shown is decoded.
    const isSearch = query.text !== "";
    const pool = isSearch ? ordered : ordered.slice(query.cursor, query.cursor + query.limit);
    const rows: StudioExhibit[] = [];
    for (const entry of pool) rows.push(await this.#row(owner, entry, isSearch));
    const found = isSearch ? rows.filter(isMeant) : rows;
    const page = isSearch ? found.slice(query.cursor, query.cursor + query.limit) : found;
    const total = isSearch ? found.length : ordered.length;
    const end = query.cursor + page.length;
    return {
      exhibits: page.map((row) => ({ ...row, preview: row.preview.slice(0, previewLength) })),
      cursor: end < total ? String(end) : null,
      steps,
      splits,
      seen,
    };
  }

  async detail(
    owner: string,
    id: string,
    range: { readonly from: number; readonly to: number | null },
  ): Promise<StudioExhibitDetail> {
    const entry = await this.#find(owner, id);
    const { head } = entry;
    const content = await entry.content();
    const text = await this.#textOf(entry, content);
    const { columns, extra = {} } = content;
    const ids = Array.from(columns.tokens);
    const { loop } = this.#core.context;
    const pieces = await loop.run(owner, piecesOf(text, ids));
    const from = Math.min(range.from, ids.length);
    const to = Math.min(range.to ?? from + pageTokens, ids.length, from + 4 * pageTokens);
    const tokens = tokensOf(content, pieces, text, from, to);
    // Tokens with logprobs are answers; nothing of a sample is trained on.
    const shown = entry.place.kind === "sample" ? { ...tokens, weight: null } : tokens;
    const whole = ids.length <= maxTextTokens ? pieces.join("") : null;
    const { text: loggedText, messages, metrics, logs, model, ...rest } = extra;
    const columnsAsNumbers =
      ids.length > 0 && ids.length <= pageTokens ? { columns: plainColumns(content) } : {};
    return {
      ...listed(entry, previewOf(extra, pieces)),
      from,
      tokens: shown,
      text: ids.length > 0 ? whole : typeof loggedText === "string" ? loggedText : null,
      messages: (messages as readonly StudioMessage[] | undefined) ?? null,
      metrics: (metrics as StudioExhibitDetail["metrics"] | undefined) ?? {},
      logs: (logs as readonly string[] | undefined) ?? [],
      weights: typeof model === "string" ? model : entry.modelId,
      warnings: warningsOf(content, pieces, text),
      raw: entry.raw ?? { head, ...rest, ...columnsAsNumbers, extra },
    };
  }

  #stored(log: LogRecord, query: ExhibitsQuery) {
    const { exhibits } = this.#core.context.store;
    const ids = [...new Set([log.logId, ...this.#studio.rows.row(log).models])];
    const steps = [...new Set(ids.flatMap((id) => exhibits.steps(id, query.kind)))].toSorted(
      (a, b) => a - b,
    );
    const splits = [...new Set(ids.flatMap((id) => exhibits.splits(id, query.kind)))];
    const step = query.step ?? steps.at(-1);
    const batches = (step === undefined ? [] : ids)
      .flatMap((id) => exhibits.byStep(id, query.kind, step!))
      .filter(({ split }) => query.split === null || split === query.split);
    const seen = batches.reduce<number | null>(
      (sum, batch) => (batch.seen === null ? sum : (sum ?? 0) + batch.seen),
      null,
    );
    return {
      entries: batches.flatMap((batch) => this.#entriesOf(query.run, batch)),
      steps,
      splits,
      seen,
    };
  }

  async #inFolder({ run, kind, step: wanted, split }: ExhibitsQuery) {
    const steps = await this.#folders.steps(run, kind);
    const step = wanted ?? steps.at(-1);
    const all = step === undefined ? [] : await this.#folders.exhibits(run, kind, step);
    const entries = all
      .map((one, place) => folderEntry(run, kind, step!, place, one))
      .filter(({ place }) => split === null || place.split === split);
    const splits = [...new Set(all.map((one) => one.split))];
    return { entries, steps, splits, seen: all.length > 0 ? all.length : null };
  }

  /** What a list shows of an exhibit; of one that cannot be read its numbers. */
  async #row(owner: string, entry: Entry, isWhole: boolean): Promise<StudioExhibit> {
    const content = await entry.content().catch(() => undefined);
    if (!content) return listed(entry, "");
    const text = await this.#textOf(entry, content);
    // The beginning of what is trained on says more than the beginning of a prompt all share.
    const ids = Array.from(content.columns.tokens).slice(0, isWhole ? pageTokens : previewTokens);
    const pieces = await this.#core.context.loop.run(owner, piecesOf(text, ids));
    return listed(entry, previewOf(content.extra ?? {}, pieces));
  }

  async #find(owner: string, id: string): Promise<Entry> {
    const [, folder = "", kind, step, place] =
      /^(folder-\w+)\.(rollout|sample)\.(-?[\d.]+)\.(\d+)$/.exec(id) ?? [];
    if (kind !== undefined) {
      this.#studio.owned(owner, folder);
      const all = await this.#folders.exhibits(folder, kind as StudioExhibitKind, Number(step));
      const found = all[Number(place)];
      if (!found) throw notFound(`exhibit ${id}`);
      return folderEntry(folder, kind as StudioExhibitKind, Number(step), Number(place), found);
    }
    const [, batchId, index] = /^(\d+)\.(\d+)$/.exec(id) ?? [];
    if (batchId === undefined) throw badRequest("id", `${id} is no exhibit`);
    const batch = this.#core.context.store.exhibits.get(Number(batchId));
    if (!batch) throw gone(`exhibit ${id} is no longer kept: the oldest go when there are many`);
    this.#studio.owned(owner, batch.logId);
    const entry = this.#entriesOf(batch.logId, batch)[Number(index)];
    if (!entry) throw notFound(`exhibit ${id}`);
    return entry;
  }

  /** The exhibits of a batch; its bytes are read once, with the first of them that is looked at. */
  #entriesOf(run: string, batch: ExhibitBatch): Entry[] {
    let reading: Promise<Uint8Array | null> | undefined;
    const { exhibitId, logId, modelId, step, kind, split, at } = batch;
    const { exhibitFiles } = this.#core.context.store;
    return (JSON.parse(batch.heads) as ExhibitHead[]).map((head, index) => ({
      id: `${exhibitId}.${index}`,
      place: { run, step, kind, split, at },
      head,
      logId,
      modelId,
      content: async () => {
        try {
          const bytes = await (reading ??= readContent(batch.content, exhibitFiles));
          const content = bytes && unpackExhibit(bytes, index);
          if (content) return content;
        } catch (error) {
          this.#core.context.logger.warn("an exhibit is damaged", { error: String(error) });
        }
        throw gone("what was kept of this exhibit is damaged or no longer there");
      },
    }));
  }

  /** The tokenizer of what was kept; null when there is none here. */
  async #textOf({ logId, modelId }: Entry, { extra }: ExhibitContent): Promise<ModelText | null> {
    const { store } = this.#core.context;
    const named = typeof extra?.["model"] === "string" ? extra["model"] : modelId;
    if (named !== null && this.#core.bases.names.includes(named))
      return this.#core.bases.text(named).catch(() => null);
    const models = [named, modelId, ...store.logs.models(logId)];
    const model = models.flatMap((id) => store.models.get(id ?? "") ?? [])[0];
    const config = store.logs.get(logId)?.config ?? null;
    const base = model?.baseModel ?? configText(config, baseModelNames) ?? named;
    if (base === null || base === undefined) return null;
    return this.#core.bases.text(base).catch(() => null);
  }
}

function folderEntry(
  run: string,
  kind: StudioExhibitKind,
  step: number,
  place: number,
  { split, head, content, raw, at }: FolderExhibit,
): Entry {
  return {
    id: `${run}.${kind}.${step}.${place}`,
    place: { run, step, kind, split, at },
    head,
    logId: run,
    modelId: null,
    content: () => Promise.resolve(content),
    raw,
  };
}

/** What a list shows of an exhibit. */
function listed({ id, place, head }: Entry, preview: string): StudioExhibit {
  return {
    id,
    ...place,
    ...head,
    reward: head.reward as StudioNumber | null,
    advantage: head.advantage as StudioNumber | null,
    nll: head.nll as StudioNumber | null,
    preview,
  };
}

/** What each token adds to the text; bytes of a character that spans tokens go to its last token. */
function* piecesOf(
  text: ModelText | null,
  ids: readonly number[],
): Generator<void, string[], void> {
  if (!text) return ids.map((id) => ` ${id}`);
  const decoder = text.tokenizer.incrementalDecoder();
  const pieces: string[] = [];
  for (const id of ids) {
    pieces.push(decoder.push(id));
    if (pieces.length % tokensPerStep === 0) yield;
  }
  if (pieces.length > 0) pieces[pieces.length - 1] += decoder.flush();
  return pieces;
}

function previewOf(extra: Readonly<Record<string, unknown>>, pieces: readonly string[]): string {
  const { text, messages } = extra;
  if (typeof text === "string") return text;
  if (pieces.length > 0) return pieces.join("");
  if (!Array.isArray(messages)) return "";
  return (messages as StudioMessage[]).map(({ role, content }) => `${role}: ${content}`).join("\n");
}

function tokensOf(
  { columns }: ExhibitContent,
  pieces: readonly string[],
  text: ModelText | null,
  from: number,
  to: number,
): StudioTokens {
  const special = new Set(text?.tokenizer.specialTokens.values());
  const ids = Array.from(columns.tokens).slice(from, to);
  const weights = columns.weight ?? columns.mask;
  const column = (values: ArrayLike<number> | undefined): (StudioNumber | null)[] | null =>
    values
      ? Array.from(values)
          .slice(from, to)
          .map((value, index) =>
            Number.isNaN(value) && (index + from === 0 || columns.mask?.[index + from] === 0)
              ? null
              : toPlain(value),
          )
      : null;
  return {
    ids,
    pieces: pieces.slice(from, to),
    isSpecial: ids.map((id) => special.has(id)),
    weight: weights
      ? Array.from(weights)
          .slice(from, to)
          .map((value) => (Number.isFinite(value) ? value : null))
      : null,
    logprob: column(columns.logprob),
    samplerLogprob: column(columns.samplerLogprob),
    advantage: column(columns.advantage),
    entropy: column(columns.entropy),
  };
}

/** Role tags are to be read, not said: one that is trained on is most often a mistake. */
function warningsOf(
  { columns }: ExhibitContent,
  pieces: readonly string[],
  text: ModelText | null,
): string[] {
  if (!text || !columns.weight) return [];
  const ends = new Set(text.ends);
  const special = new Set(text.tokenizer.specialTokens.values());
  const places: number[] = [];
  for (let place = 0; place < columns.tokens.length; place++) {
    const id = columns.tokens[place]!;
    const weight = columns.weight[place]!;
    if (special.has(id) && !ends.has(id) && Number.isFinite(weight) && weight !== 0)
      places.push(place);
  }
  return places
    .slice(0, 20)
    .map((place) => `the special token ${pieces[place] ?? ""} at ${place} is trained`);
}

function plainColumns({ columns }: ExhibitContent): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(columns).map(([name, values]) => [
      name,
      Array.from(values as ArrayLike<number>).map(toPlain),
    ]),
  );
}

function inOrder(entries: readonly Entry[], order: string): Entry[] {
  const field = order.replace(/^-/, "");
  const sign = order.startsWith("-") ? -1 : 1;
  const valueOf = ({ head }: Entry): number => {
    switch (field) {
      case "reward":
      case "advantage":
      case "nll":
        return toNumber(head[field]) ?? Number.NEGATIVE_INFINITY;
      case "length":
        return head.tokenCount;
      default:
        return (head.group ?? 0) * 1e6 + head.index;
    }
  };
  return entries.toSorted((a, b) => sign * (valueOf(a) - valueOf(b)));
}
