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
} from "../recording/exhibit-content.js";
import { toNumber, toPlain } from "../recording/numbers.js";
import { readContent } from "../store/content.js";
import type { ExhibitBatch } from "../store/exhibits-table.js";
import type { LogFolders } from "./log-folders.js";
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

const previewTokens = 80;
const previewLength = 200;
const pageTokens = 4000;
const maxTextTokens = 250_000;

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
    const { exhibits } = this.#core.context.store;
    const log = this.#studio.owned(owner, query.run);
    if (log.source === "folder") return this.#ofFolder(query);
    const ids = [...new Set([log.logId, ...this.#studio.rows.row(log).models])];
    const steps = [...new Set(ids.flatMap((id) => exhibits.steps(id, query.kind)))].toSorted(
      (a, b) => a - b,
    );
    const splits = [...new Set(ids.flatMap((id) => exhibits.splits(id, query.kind)))];
    const step = query.step ?? steps.at(-1);
    if (step === undefined) return { exhibits: [], cursor: null, steps, splits, seen: null };
    const batches = ids
      .flatMap((id) => exhibits.byStep(id, query.kind, step))
      .filter(({ split }) => query.split === null || split === query.split);
    const entries = batches.flatMap((batch) =>
      headsOf(batch).map((head, index) => ({ batch, head, index })),
    );
    const meant = entries.filter(({ head }) => query.group === null || head.group === query.group);
    const ordered = inOrder(meant, query.order, ({ head }) => head);
    const isMeant = (row: StudioExhibit): boolean =>
      row.preview.toLowerCase().includes(query.text.toLowerCase());
    // Without a search only what is shown is decoded.
    const isSearch = query.text !== "";
    const pool = isSearch ? ordered : ordered.slice(query.cursor, query.cursor + query.limit);
    const rows = await this.#rows(query.run, pool, isSearch ? pageTokens : previewTokens);
    const found = isSearch ? rows.filter(isMeant) : rows;
    const page = isSearch ? found.slice(query.cursor, query.cursor + query.limit) : found;
    const total = isSearch ? found.length : ordered.length;
    const end = query.cursor + page.length;
    return {
      exhibits: page.map((row) => ({ ...row, preview: row.preview.slice(0, previewLength) })),
      cursor: end < total ? String(end) : null,
      steps,
      splits,
      seen: batches.reduce<number | null>(
        (sum, { seen }) => (seen === null ? sum : (sum ?? 0) + seen),
        null,
      ),
    };
  }

  async detail(
    owner: string,
    id: string,
    range: { readonly from: number; readonly to: number | null },
  ): Promise<StudioExhibitDetail> {
    const [, folder = "", step, split, place] = /^(folder-\w+)\.(\d+)\.(.+)\.(\d+)$/.exec(id) ?? [];
    if (step !== undefined) {
      this.#studio.owned(owner, folder);
      const all = await this.#folders.rollouts(folder, Number(step));
      const found = all.filter((one) => one.split === split)[Number(place)];
      if (!found) throw notFound(`exhibit ${id}`);
      return found;
    }
    const { batch, index } = this.#find(owner, id);
    const head = headsOf(batch)[index];
    if (!head) throw notFound(`exhibit ${id}`);
    const content = await this.#content(batch, index);
    const text = await this.#textOf(batch, content);
    const { columns, extra = {} } = content;
    const ids = Array.from(columns.tokens);
    const pieces = piecesOf(text, ids);
    const from = Math.min(range.from, ids.length);
    const to = Math.min(range.to ?? from + pageTokens, ids.length, from + 4 * pageTokens);
    const tokens = tokensOf(content, pieces, text, from, to);
    const whole = ids.length <= maxTextTokens ? pieces.join("") : null;
    const { text: loggedText, messages, metrics, logs, model, ...rest } = extra;
    return {
      ...this.#row(batch.logId, batch, head, index, previewOf(extra, pieces)),
      from,
      tokens,
      text: ids.length > 0 ? whole : typeof loggedText === "string" ? loggedText : null,
      messages: (messages as readonly StudioMessage[] | undefined) ?? null,
      metrics: (metrics as StudioExhibitDetail["metrics"] | undefined) ?? {},
      logs: (logs as readonly string[] | undefined) ?? [],
      weights: typeof model === "string" ? model : batch.modelId,
      warnings: warningsOf(content, pieces, text),
      raw: {
        head,
        ...rest,
        ...(ids.length > 0 && ids.length <= pageTokens ? { columns: plainColumns(content) } : {}),
        extra,
      },
    };
  }

  async #ofFolder(query: ExhibitsQuery): Promise<StudioExhibits> {
    const steps = query.kind === "rollout" ? await this.#folders.steps(query.run) : [];
    const step = query.step ?? steps.at(-1);
    const all = step === undefined ? [] : await this.#folders.rollouts(query.run, step);
    const meant = all.filter(
      ({ split, group, preview }) =>
        (query.split === null || split === query.split) &&
        (query.group === null || group === query.group) &&
        preview.toLowerCase().includes(query.text.toLowerCase()),
    );
    const page = inOrder(meant, query.order, (one) => one).slice(
      query.cursor,
      query.cursor + query.limit,
    );
    const end = query.cursor + page.length;
    return {
      exhibits: page.map(toListed),
      cursor: end < meant.length ? String(end) : null,
      steps,
      splits: [...new Set(all.map(({ split }) => split))],
      seen: all.length,
    };
  }

  async #rows(
    run: string,
    entries: readonly { batch: ExhibitBatch; head: ExhibitHead; index: number }[],
    tokens: number,
  ): Promise<StudioExhibit[]> {
    const bytes = new Map<number, Promise<Uint8Array | null>>();
    const rows: StudioExhibit[] = [];
    for (const { batch, head, index } of entries) {
      const reading = bytes.get(batch.exhibitId) ?? this.#bytes(batch);
      bytes.set(batch.exhibitId, reading);
      const read = await reading.catch(() => null);
      const content = read && unpackExhibit(read, index);
      let preview = "";
      if (content) {
        const text = await this.#textOf(batch, content);
        // The beginning of what is trained on says more than the beginning of a prompt all share.
        const ids = Array.from(content.columns.tokens).slice(0, tokens);
        preview = previewOf(content.extra ?? {}, piecesOf(text, ids));
      }
      rows.push(this.#row(run, batch, head, index, preview));
    }
    return rows;
  }

  #row(
    run: string,
    { exhibitId, step, kind, split, at }: ExhibitBatch,
    head: ExhibitHead,
    index: number,
    preview: string,
  ): StudioExhibit {
    return {
      id: `${exhibitId}.${index}`,
      run,
      step,
      kind,
      split,
      group: head.group,
      index: head.index,
      reward: head.reward as StudioNumber | null,
      advantage: head.advantage as StudioNumber | null,
      nll: head.nll as StudioNumber | null,
      tokenCount: head.tokenCount,
      trainedCount: head.trainedCount,
      stopReason: head.stopReason,
      preview,
      at,
    };
  }

  #find(owner: string, id: string): { batch: ExhibitBatch; index: number } {
    const [, batchId, index] = /^(\d+)\.(\d+)$/.exec(id) ?? [];
    if (batchId === undefined) throw badRequest("id", `${id} is no exhibit`);
    const batch = this.#core.context.store.exhibits.get(Number(batchId));
    if (!batch) throw gone(`exhibit ${id} is no longer kept: the oldest go when there are many`);
    this.#studio.owned(owner, batch.logId);
    return { batch, index: Number(index) };
  }

  #bytes(batch: ExhibitBatch): Promise<Uint8Array | null> {
    return readContent(batch.content, this.#core.context.store.exhibitFiles);
  }

  async #content(batch: ExhibitBatch, index: number): Promise<ExhibitContent> {
    const bytes = await this.#bytes(batch);
    const content = bytes && unpackExhibit(bytes, index);
    if (!content) throw gone("what was kept of this exhibit is no longer there");
    return content;
  }

  /** The tokenizer of what was kept; null when there is none here. */
  async #textOf(batch: ExhibitBatch, { extra }: ExhibitContent): Promise<ModelText | null> {
    const { store } = this.#core.context;
    const named = typeof extra?.["model"] === "string" ? extra["model"] : batch.modelId;
    const models = [named, ...store.logs.models(batch.logId)];
    const model = models.flatMap((id) => store.models.get(id ?? "") ?? [])[0];
    const base = model?.baseModel ?? named;
    if (base === null || base === undefined) return null;
    return this.#core.bases.text(base).catch(() => null);
  }
}

function headsOf({ heads }: ExhibitBatch): ExhibitHead[] {
  return JSON.parse(heads) as ExhibitHead[];
}

/** What each token adds to the text; bytes of a character that spans tokens go to its last token. */
function piecesOf(text: ModelText | null, ids: readonly number[]): string[] {
  if (!text) return ids.map((id) => ` ${id}`);
  const decoder = text.tokenizer.incrementalDecoder();
  const pieces = ids.map((id) => decoder.push(id));
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
            index + from === 0 && Number.isNaN(value) ? null : toPlain(value),
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

function inOrder<T>(entries: readonly T[], order: string, headOf: (entry: T) => ExhibitHead): T[] {
  const field = order.replace(/^-/, "");
  const sign = order.startsWith("-") ? -1 : 1;
  const valueOf = (head: ExhibitHead): number => {
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
  return entries.toSorted((a, b) => sign * (valueOf(headOf(a)) - valueOf(headOf(b))));
}

/** What a list shows of an exhibit. */
function toListed(detail: StudioExhibitDetail): StudioExhibit {
  const { id, run, step, kind, split, group, index, reward, advantage, nll } = detail;
  const { tokenCount, trainedCount, stopReason, preview, at } = detail;
  return {
    id,
    run,
    step,
    kind,
    split,
    group,
    index,
    reward,
    advantage,
    nll,
    tokenCount,
    trainedCount,
    stopReason,
    preview,
    at,
  };
}
