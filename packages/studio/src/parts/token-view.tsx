import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { StudioTokens } from "tinker-ts/wire/studio";
import { exactly, percent } from "../text/numbers.js";
import { visible } from "../text/visible.js";
import {
  coloursFor,
  ratioOf,
  shadeOf,
  tokenColours,
  tokenValue,
  type Shade,
  type TokenColour,
} from "./token-colours.js";
import "./token-view.css";

// Neighbours with the same look are one element: thousands of elements would be slow. The token under the mouse is found
// from the position in the text; one highlight shows it.

interface Stretch {
  readonly shade: Shade;
  readonly text: string;
}

/** Tokens as text, coloured by a value; mouse and arrow keys select one. */
export function TokenView({
  tokens,
  from = 0,
  colour,
  setColour,
  alternatives,
}: {
  readonly tokens: StudioTokens;
  /** The place of the first token in the whole. */
  readonly from?: number;
  readonly colour: TokenColour;
  readonly setColour: (colour: TokenColour) => void;
  /** Alternatives at a position. */
  readonly alternatives?: (
    place: number,
  ) => readonly { readonly text: string; readonly logprob: number }[];
}) {
  const possible = coloursFor(tokens);
  const by = possible.includes(colour) ? colour : possible[0]!;
  const box = useRef<HTMLDivElement>(null);
  // The selected token and its tokens: new tokens reset the selection.
  const read = useSignal<readonly [StudioTokens, number] | null>(null);
  const place = read.value?.[0] === tokens ? read.value[1] : -1;
  const { stretches, ends, shades } = useMemo(() => layOut(tokens, by), [tokens, by]);
  const show = (next: number): void => {
    if (next !== place) read.value = [tokens, next];
  };
  useLayoutEffect(() => {
    if (place >= 0) highlight(box.current!, ends, place);
    return clearHighlight;
  }, [ends, place]);
  return (
    <div class="token-view stack">
      <div class="row">
        <label class="choice">
          colour by
          <select
            class="field"
            value={by}
            onChange={(event) => setColour(event.currentTarget.value as TokenColour)}
          >
            {tokenColours
              .filter(({ value }) => possible.includes(value))
              .map(({ value, name }) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
          </select>
        </label>
        <ul class="legend row" aria-label="Legend">
          {shades.map(({ name, text }) => (
            <li key={name}>
              <span class={`token ${name}`}>ab</span> <span class="muted small">{text}</span>
            </li>
          ))}
        </ul>
      </div>
      <div
        ref={box}
        class="tokens"
        role="slider"
        tabIndex={0}
        aria-label="Tokens; move with the arrow keys"
        aria-valuemin={0}
        aria-valuemax={tokens.ids.length - 1}
        aria-valuenow={Math.max(0, place)}
        aria-valuetext={place < 0 ? "none" : describe(tokens, place, from)}
        onMouseMove={(event) => {
          const offset = offsetAt(box.current!, event);
          if (offset !== null) show(placeAt(ends, offset));
        }}
        onKeyDown={(event) => {
          const by10 = event.shiftKey ? 10 : 1;
          const moves: Readonly<Record<string, number>> = {
            ArrowRight: place + by10,
            ArrowLeft: place - by10,
            Home: 0,
            End: tokens.ids.length - 1,
          };
          const next = moves[event.key];
          if (next === undefined) return;
          event.preventDefault();
          show(Math.min(tokens.ids.length - 1, Math.max(0, next)));
        }}
      >
        {stretches.map(({ shade, text }, index) => (
          <span key={index} class={`token ${shade.name}`}>
            {text}
          </span>
        ))}
      </div>
      <TokenFacts tokens={tokens} place={place} from={from} />
      {place >= 0 && alternatives && (
        <ol class="alternatives small tabular" aria-label="Alternatives">
          {alternatives(place).map(({ text, logprob }) => (
            <li key={text} class={text === tokens.pieces[place] ? "taken" : ""}>
              <code>{JSON.stringify(visible(text))}</code> {exactly(logprob)}{" "}
              <span class="muted">{percent(Math.exp(logprob))}</span>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

/** The values of one token. */
function TokenFacts({
  tokens,
  place,
  from,
}: {
  readonly tokens: StudioTokens;
  readonly place: number;
  readonly from: number;
}) {
  if (place < 0 || place >= tokens.ids.length) {
    return (
      <p class="facts muted small">Point at a token, or use the arrow keys, to see its values.</p>
    );
  }
  return (
    <dl class="facts tabular small" aria-live="polite">
      {factsOf(tokens, place, from).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function factsOf(
  tokens: StudioTokens,
  place: number,
  from: number,
): readonly (readonly [string, string])[] {
  const value = (by: TokenColour): number | null => tokenValue(tokens, place, by);
  const read = (column: readonly (number | string | null)[] | null): number | null => {
    const one = column?.[place] ?? null;
    return one === null ? null : Number(one);
  };
  const trainer = read(tokens.logprob);
  const sampler = read(tokens.samplerLogprob);
  const advantage = read(tokens.advantage);
  const weight = value("weight");
  const entropy = value("entropy");
  const facts: [string, string | null][] = [
    ["token", `${from + place}`],
    ["text", JSON.stringify(visible(tokens.pieces[place] ?? ""))],
    ["id", tokens.ids[place]! < 0 ? null : String(tokens.ids[place])],
    ["special", tokens.isSpecial[place] ? "yes" : null],
    ["weight", weight === null ? null : exactly(weight)],
    ["logprob", trainer === null ? null : exactly(trainer)],
    ["sampler", sampler === null ? null : exactly(sampler)],
    ["ratio", trainer === null || sampler === null ? null : exactly(ratioOf(trainer, sampler))],
    ["advantage", advantage === null ? null : exactly(advantage)],
    ["entropy", entropy === null ? null : exactly(entropy)],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}

function describe(tokens: StudioTokens, place: number, from: number): string {
  return factsOf(tokens, place, from)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

function layOut(tokens: StudioTokens, by: TokenColour) {
  const stretches: { shade: Shade; text: string }[] = [];
  const ends: number[] = [];
  const shades = new Map<string, Shade>();
  let length = 0;
  for (let place = 0; place < tokens.ids.length; place++) {
    const shade = shadeOf(tokenValue(tokens, place, by), by);
    const text = visible(tokens.pieces[place] ?? "").replaceAll("\n", "⏎\n");
    length += text.length;
    ends.push(length);
    shades.set(shade.name, shade);
    const last = stretches.at(-1);
    if (last?.shade.name === shade.name) last.text += text;
    else stretches.push({ shade, text });
  }
  return { stretches: stretches as readonly Stretch[], ends, shades: [...shades.values()] };
}

function placeAt(ends: readonly number[], offset: number): number {
  let low = 0;
  let high = ends.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle]! <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The text offset under the mouse; null beside the text. */
function offsetAt(box: HTMLElement, event: MouseEvent): number | null {
  const spot = caretAt(event.clientX, event.clientY);
  if (!spot || !box.contains(spot.node)) return null;
  const element = spot.node.parentElement;
  if (!element?.classList.contains("token")) return null;
  let before = 0;
  for (let sibling = element.previousSibling; sibling; sibling = sibling.previousSibling) {
    before += sibling.textContent?.length ?? 0;
  }
  // A caret is between two characters; the mouse is on one of them.
  const isPast = spot.offset > 0 && isWithin(spot.node, spot.offset - 1, event);
  return before + (isPast ? spot.offset - 1 : spot.offset);
}

function isWithin(node: Node, offset: number, { clientX, clientY }: MouseEvent): boolean {
  const range = document.createRange();
  range.setStart(node, offset);
  range.setEnd(node, offset + 1);
  return [...range.getClientRects()].some(
    ({ left, right, top, bottom }) =>
      clientX >= left && clientX < right && clientY >= top && clientY < bottom,
  );
}

function caretAt(x: number, y: number): { node: Node; offset: number } | null {
  if ("caretPositionFromPoint" in document) {
    const spot = document.caretPositionFromPoint(x, y);
    return spot && { node: spot.offsetNode, offset: spot.offset };
  }
  const range = (document as Document).caretRangeFromPoint?.(x, y);
  return range ? { node: range.startContainer, offset: range.startOffset } : null;
}

function highlight(box: HTMLElement, ends: readonly number[], place: number): void {
  if (!("highlights" in CSS)) return;
  const start = place > 0 ? ends[place - 1]! : 0;
  const end = ends[place] ?? start;
  let before = 0;
  for (const element of box.children) {
    const length = element.textContent?.length ?? 0;
    if (start < before + length && element.firstChild) {
      const range = document.createRange();
      range.setStart(element.firstChild, start - before);
      range.setEnd(element.firstChild, Math.min(length, Math.max(start - before, end - before)));
      CSS.highlights.set("token", new Highlight(range));
      return;
    }
    before += length;
  }
}

function clearHighlight(): void {
  if ("highlights" in CSS) CSS.highlights.delete("token");
}
