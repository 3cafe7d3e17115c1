import { useEffect } from "preact/hooks";
import type { StudioExhibit, StudioRunDetail } from "tinker-ts/wire/studio";
import { useExhibits } from "../../data/exhibits.js";
import { useKeys } from "../../data/keys.js";
import { queryValue, setQuery } from "../../data/location.js";
import { numberOrNull } from "../../data/numbers.js";
import { ExhibitView } from "../../parts/exhibit-view.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { VirtualList } from "../../parts/virtual-list.js";
import { Name } from "../../parts/words.js";
import { count, figure, percent } from "../../text/numbers.js";
import { NotKept } from "./not-kept.js";
import { chosenStep, StepChoice } from "./step-choice.js";

const asked = queryValue("step");
const openId = queryValue("at");
const search = queryValue("text");

/** What was trained on, token by token. */
export function DataTab({ run }: { readonly run: StudioRunDetail }) {
  const steps = run.exhibitSteps.datum;
  const step = chosenStep(steps, asked.value);
  const list = useExhibits({ run: run.id, step, kind: "datum", split: "", q: search.value }).value;
  const exhibits = list?.exhibits ?? [];
  const open = exhibits.find(({ id }) => id === openId.value) ?? exhibits[0];
  const move = (by: number): void => {
    const next = exhibits[exhibits.findIndex(({ id }) => id === open?.id) + by];
    if (next) setQuery({ at: next.id });
  };
  useKeys([
    { keys: "j", does: "next example", run: () => move(1) },
    { keys: "k", does: "previous example", run: () => move(-1) },
  ]);
  useEffect(() => {
    if (step !== null && asked.value !== "" && String(step) !== asked.value)
      setQuery({ step: String(step) });
  }, [step]);
  if (steps.length === 0) return <NotKept run={run} kind="datum" />;
  return (
    <div class="stack">
      <div class="row">
        <StepChoice steps={steps} step={step!} />
        <span class="grow" />
        <input
          type="search"
          class="field"
          placeholder="Search the texts"
          aria-label="Search the texts"
          value={search.value}
          onInput={(event) => setQuery({ text: event.currentTarget.value || null })}
        />
      </div>
      {list?.failure && <Failure failure={list.failure} what="the examples" />}
      {!list && <Shapes count={3} />}
      {list && (
        <div class="split">
          <div class="card" aria-label="Examples" role="list">
            <p class="padded muted small tabular">
              {count(exhibits.length)}
              {list.seen !== null && list.seen > exhibits.length && ` of ${count(list.seen)}`}{" "}
              examples of this step
            </p>
            <VirtualList count={exhibits.length} rowHeight={54}>
              {(index) => (
                <DatumRow
                  key={exhibits[index]!.id}
                  exhibit={exhibits[index]!}
                  isOpen={exhibits[index] === open}
                />
              )}
            </VirtualList>
          </div>
          {open && <ExhibitView key={open.id} id={open.id} />}
        </div>
      )}
    </div>
  );
}

function DatumRow({
  exhibit,
  isOpen,
}: {
  readonly exhibit: StudioExhibit;
  readonly isOpen: boolean;
}) {
  const { tokenCount, trainedCount } = exhibit;
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
        <span class="muted small tabular">
          {count(tokenCount)} tokens · {percent(tokenCount > 0 ? trainedCount / tokenCount : 0)}{" "}
          trained · nll {figure(numberOrNull(exhibit.nll))}
        </span>
      </button>
    </div>
  );
}
