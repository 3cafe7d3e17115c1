import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { StudioCheckpoint, StudioMachine, StudioTokens } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { now } from "../../data/clock.js";
import { thinkingOf } from "../../data/completions.js";
import type { TokenColour } from "../../parts/token-colours.js";
import { TokenView } from "../../parts/token-view.js";
import { Name, Words } from "../../parts/words.js";
import { count, figure } from "../../text/numbers.js";
import { span } from "../../text/times.js";
import { visible, visibleName } from "../../text/visible.js";
import type { Answer, Sample } from "./ask.js";

/** One set of weights and its conversation. */
export interface ColumnState {
  readonly weights: string;
  /** The turns before the last answer. */
  readonly turns: Signal<readonly Answer[]>;
  readonly answer: Signal<Answer | null>;
  readonly showsTokens: Signal<boolean>;
}

/** A column without a conversation. */
export function newColumn(weights: string): ColumnState {
  return { weights, turns: signal([]), answer: signal(null), showsTokens: signal(false) };
}

/** Descriptions of the reasoning modes. */
const thinkingModes = {
  inside: "Thinks before it answers.",
  behind: "Answers without thinking.",
} as const;

/** The conversation with one set of weights. */
export function Column({
  column,
  isShown,
  models,
  samplers,
  choose,
  remove,
}: {
  readonly column: ColumnState;
  /** On a narrow screen one column is shown. */
  readonly isShown: boolean;
  readonly models: readonly string[];
  readonly samplers: readonly StudioCheckpoint[];
  readonly choose: (weights: string) => void;
  readonly remove?: () => void;
}) {
  const { weights } = column;
  // Leaving the page, or removing the column, aborts the generation.
  useEffect(() => () => column.answer.peek()?.abort.abort(), [column]);
  const isListed = models.includes(weights) || samplers.some(({ path }) => path === weights);
  const thinking = useSignal<string | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    thinking.value = null;
    thinkingOf(weights, abort.signal).then(
      (state) => (thinking.value = state && thinkingModes[state]),
      () => undefined, // A model without a template; sending a prompt reports it.
    );
    return () => abort.abort();
  }, [weights]);
  const turns = [...column.turns.value, ...(column.answer.value ? [column.answer.value] : [])];
  return (
    <section class={`card column ${isShown ? "shown" : ""}`} aria-label={visibleName(weights)}>
      <div class="row head">
        <select
          class="field grow"
          aria-label="Weights"
          value={weights}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {!isListed && <option value={weights}>{visibleName(weights)}</option>}
          <optgroup label="Base models">
            {models.map((name) => (
              <option key={name} value={name}>
                base: {visibleName(name)}
              </option>
            ))}
          </optgroup>
          <optgroup label="Checkpoints">
            {samplers.map(({ path, name, runName }) => (
              <option key={path} value={path}>
                {visibleName(runName)} / {visibleName(name)}
              </option>
            ))}
          </optgroup>
        </select>
        <button
          type="button"
          class="button"
          aria-pressed={column.showsTokens.value}
          onClick={() => (column.showsTokens.value = !column.showsTokens.value)}
        >
          tokens
        </button>
        {remove && (
          <button
            type="button"
            class="button plain"
            aria-label="Remove this column"
            onClick={remove}
          >
            ✕
          </button>
        )}
      </div>
      {thinking.value && <p class="muted small">{thinking.value}</p>}
      <div class="turns">
        {turns.length === 0 && <p class="muted">No messages yet.</p>}
        {turns.map((answer, index) => (
          <Turn key={index} answer={answer} showsTokens={column.showsTokens.value} />
        ))}
      </div>
    </section>
  );
}

function Turn({ answer, showsTokens }: { readonly answer: Answer; readonly showsTokens: boolean }) {
  const { prompt, samples, failure, note, isRunning } = answer;
  return (
    <article class="turn stack">
      <div class="question">
        <Words>{prompt}</Words>
      </div>
      {note && <p class="muted small">{note}</p>}
      {samples.map((sample, index) => (
        <SampleView key={index} sample={sample} answer={answer} showsTokens={showsTokens} />
      ))}
      {isRunning && samples.length === 0 && <Waiting since={answer.startedAt} />}
      {failure && (
        <p class="notice error" role="alert">
          {visible(failure)}
        </p>
      )}
    </article>
  );
}

function SampleView({
  sample,
  answer,
  showsTokens,
}: {
  readonly sample: Sample;
  readonly answer: Answer;
  readonly showsTokens: boolean;
}) {
  const { tokens, finish, hasThought, hasAnswer } = sample;
  const { firstAt, lastAt, model, startedAt } = answer;
  const sum = tokens.reduce((total, { logprob }) => total + logprob, 0);
  const seconds = firstAt !== null && lastAt !== null ? (lastAt - firstAt) / 1000 : 0;
  const all = answer.samples.reduce((total, one) => total + one.tokens.length, 0);
  const pace = seconds > 0 && all > 1 ? (all - 1) / seconds : null;
  const columns = useMemo(() => columnsOf(sample), [sample]);
  return (
    <div class="answer" aria-live="polite">
      {showsTokens && tokens.length > 0 && !answer.isRunning ? (
        <TokenView
          tokens={columns}
          colour={colour.value}
          setColour={(next) => (colour.value = next)}
          alternatives={(place) => tokens[place]?.top ?? []}
        />
      ) : (
        <div class="said">
          <Words>{sample.text || (answer.isRunning ? "" : "(nothing)")}</Words>
          {answer.isRunning && finish === null && <span class="caret" aria-hidden="true" />}
        </div>
      )}
      {finish === "length" && hasThought && !hasAnswer && (
        <p class="notice">No answer: reasoning reached the token limit. Raise max tokens.</p>
      )}
      <p class="muted small tabular">
        {count(tokens.length)} tokens
        {pace !== null && ` · ${figure(pace)} tok/s`} · logprob {figure(sum)}
        {firstAt !== null && ` · first after ${span(firstAt - startedAt)}`}
        {hasThought && " · thinks"}
        {finish && ` · ${finish}`}
        {model && (
          <>
            {" · from "}
            <span class="from">
              <Name>{model}</Name>
            </span>
          </>
        )}
      </p>
    </div>
  );
}

const colour = signal<TokenColour>("logprob");
const queueNote = signal<string | null>(null);

/** The reason for waiting. */
function Waiting({ since }: { readonly since: number }) {
  const waited = now.value - since;
  const isLong = waited > 1500;
  useEffect(() => {
    if (!isLong) return; // and again periodically: reasons change
    call<StudioMachine>("machine").then(
      ({ samples, lanes }) => {
        const training = lanes.filter(({ running }) => running !== null).length;
        queueNote.value =
          samples.note ??
          (samples.waiting > 0
            ? `${samples.waiting} answers are queued`
            : training > 0
              ? "the engine is also training"
              : null);
      },
      () => undefined,
    );
  }, [isLong && Math.floor(waited / 2000)]);
  return (
    <p class="muted small tabular">
      waiting{isLong && ` ${span(waited)}`}
      {isLong && queueNote.value && ` · ${visible(queueNote.value)}`}
    </p>
  );
}

function columnsOf({ tokens }: Sample): StudioTokens {
  return {
    ids: tokens.map(({ id }) => id ?? -1),
    pieces: tokens.map(({ text }) => text),
    isSpecial: tokens.map(() => false),
    weight: null,
    logprob: null,
    samplerLogprob: tokens.map(({ logprob }) => logprob),
    advantage: null,
    entropy: tokens.some(({ top }) => top.length > 1)
      ? tokens.map(({ top }) => (top.length > 1 ? leastEntropy(top) : null))
      : null,
  };
}

/** A lower bound of the entropy: of the likeliest tokens, with all others as one. */
function leastEntropy(top: readonly { readonly logprob: number }[]): number {
  const known = top.map(({ logprob }) => Math.exp(logprob));
  const rest = Math.max(0, 1 - known.reduce((sum, one) => sum + one, 0));
  return [...known, rest].reduce((sum, one) => sum - (one > 0 ? one * Math.log(one) : 0), 0);
}
