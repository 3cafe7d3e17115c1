import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { StudioExhibit, StudioExhibitKind, StudioRunDetail } from "tinker-ts/wire/studio";
import { useExhibits, type ExhibitsState } from "../../data/exhibits.js";
import { useKeys } from "../../data/keys.js";
import { queryValue, setQuery } from "../../data/location.js";
import { ExhibitView } from "../../parts/exhibit-view.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { VirtualList } from "../../parts/virtual-list.js";
import { Name } from "../../parts/words.js";
import { count } from "../../text/numbers.js";
import { visibleName } from "../../text/visible.js";
import { NotKept } from "./not-kept.js";
import { chosenStep, StepChoice } from "./step-choice.js";

const asked = queryValue("step");
const split = queryValue("split");
const search = queryValue("text");
const openId = queryValue("at");
const rowHeight = 54;

/** A line of the list: an exhibit, or the heading of a group. */
export type ExhibitLine =
  | { readonly exhibit: StudioExhibit; readonly heading?: undefined }
  | { readonly exhibit?: undefined; readonly heading: ComponentChildren; readonly key: string };

/** Stored examples of a step: a list, and one of them token by token. */
export function ExhibitBrowser({
  run,
  kind,
  what,
  facts,
  note,
  controls,
  above,
  arrange,
  arrangedBy = "",
  opensFirst = false,
}: {
  readonly run: StudioRunDetail;
  readonly kind: StudioExhibitKind;
  /** Their name: singular and plural. */
  readonly what: readonly [string, string];
  /** The second line of a row. */
  readonly facts: (exhibit: StudioExhibit) => ComponentChildren;
  /** A note after the number of shown examples. */
  readonly note?: (list: ExhibitsState) => string;
  /** Further controls beside the search. */
  readonly controls?: ComponentChildren;
  /** Content above the list. */
  readonly above?: (list: ExhibitsState) => ComponentChildren;
  /** Selects and orders the shown examples. */
  readonly arrange?: (list: ExhibitsState) => readonly ExhibitLine[];
  /** The dependencies of `arrange` besides the list. */
  readonly arrangedBy?: string;
  /** Whether the first one is open initially. */
  readonly opensFirst?: boolean;
}) {
  const steps = run.exhibitSteps[kind];
  const step = chosenStep(steps, asked.value);
  const query = { run: run.id, step, kind, split: split.value, q: search.value };
  const list = useExhibits(query).value;
  const lines = useMemo(
    (): readonly ExhibitLine[] =>
      !list ? [] : (arrange?.(list) ?? list.exhibits.map((exhibit) => ({ exhibit }))),
    [list, arrangedBy],
  );
  const shown = useMemo(() => lines.flatMap(({ exhibit }) => exhibit ?? []), [lines]);
  const open = shown.find(({ id }) => id === openId.value) ?? (opensFirst ? shown[0] : undefined);
  const active = useSignal(-1);
  const move = (by: number): void => {
    const now = open ? shown.indexOf(open) : -1;
    const next = shown[Math.min(shown.length - 1, Math.max(0, now + by))];
    if (!next) return;
    active.value = lines.findIndex(({ exhibit }) => exhibit === next);
    setQuery({ at: next.id });
  };
  useKeys([
    { keys: "j", does: `next ${what[0]}`, run: () => move(1) },
    { keys: "k", does: `previous ${what[0]}`, run: () => move(-1) },
    { keys: "Escape", does: `close the ${what[0]}`, run: () => setQuery({ at: null }) },
  ]);
  useEffect(() => {
    // The address may have changed since this was drawn.
    const now = chosenStep(steps, asked.value);
    if (now !== null && asked.value !== "" && String(now) !== asked.value)
      setQuery({ step: String(now) });
  }, [step]);
  if (steps.length === 0) return <NotKept run={run} kind={kind} />;
  return (
    <div class="stack">
      <div class="row">
        <StepChoice steps={steps} step={step!} />
        <span class="grow" />
        {list && list.splits.length > 1 && <SplitChoice names={list.splits} />}
        {controls}
        <input
          type="search"
          class="field"
          placeholder="Search texts"
          aria-label="Search texts"
          value={search.value}
          onInput={(event) => setQuery({ text: event.currentTarget.value || null })}
        />
      </div>
      {list?.failure && <Failure failure={list.failure} what={`the ${what[1]}`} />}
      {!list && <Shapes count={3} />}
      {list && (
        <>
          {above?.(list)}
          <div class={`split ${open ? "" : "alone"}`}>
            <div
              class="card"
              role="list"
              aria-label={what[1].replace(/^./, (a) => a.toUpperCase())}
            >
              <p class="padded muted small tabular" role="listitem">
                {count(shown.length)} {shown.length === 1 ? what[0] : what[1]}
                {list.seen !== null &&
                  list.seen > list.exhibits.length &&
                  ` kept of ${count(list.seen)}`}
                {note?.(list)}
              </p>
              <VirtualList
                role="presentation"
                count={lines.length}
                rowHeight={rowHeight}
                active={active.value}
              >
                {(index) => {
                  const line = lines[index]!;
                  return line.exhibit ? (
                    <ExhibitRow
                      key={line.exhibit.id}
                      exhibit={line.exhibit}
                      isOpen={line.exhibit === open}
                      facts={facts}
                    />
                  ) : (
                    <div key={line.key} class="group-line" role="listitem">
                      {line.heading}
                    </div>
                  );
                }}
              </VirtualList>
            </div>
            {open && <ExhibitView key={open.id} id={open.id} />}
          </div>
        </>
      )}
    </div>
  );
}

function SplitChoice({ names }: { readonly names: readonly string[] }) {
  return (
    <label class="choice">
      split
      <select
        class="field"
        value={split.value}
        onChange={(event) => setQuery({ split: event.currentTarget.value })}
      >
        <option value="">all</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {visibleName(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

function ExhibitRow({
  exhibit,
  isOpen,
  facts,
}: {
  readonly exhibit: StudioExhibit;
  readonly isOpen: boolean;
  readonly facts: (exhibit: StudioExhibit) => ComponentChildren;
}) {
  return (
    <div role="listitem">
      <button
        type="button"
        class={`exhibit-row ${isOpen ? "open" : ""}`}
        aria-current={isOpen ? "true" : undefined}
        onClick={() => setQuery({ at: exhibit.id })}
      >
        <span class="cut">
          <Name>{exhibit.preview || "(no text)"}</Name>
        </span>
        <span class="muted small tabular">{facts(exhibit)}</span>
      </button>
    </div>
  );
}
