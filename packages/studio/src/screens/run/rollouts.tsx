import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
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
import { count, figure } from "../../text/numbers.js";
import { NotKept } from "./not-kept.js";
import { binsOf, RewardHistogram } from "./reward-histogram.js";
import { groupsOf, orders, sortedGroups, type Group, type Order } from "./rollout-groups.js";
import { chosenStep, StepChoice } from "./step-choice.js";

const asked = queryValue("step");
const split = queryValue("split");
const order = queryValue("order", "group");
const search = queryValue("text");
const bin = queryValue("reward");
const openId = queryValue("at");
const rowHeight = 54;

type Line =
  | { readonly group: Group; readonly exhibit?: undefined }
  | { readonly exhibit: StudioExhibit };

/** Rollouts of a step by group, with their rewards; one of them token by token. */
export function Rollouts({ run }: { readonly run: StudioRunDetail }) {
  const steps = run.exhibitSteps.rollout;
  const step = chosenStep(steps, asked.value);
  const list = useExhibits({
    run: run.id,
    step,
    kind: "rollout",
    split: split.value,
    q: search.value,
  }).value;
  const all = list?.exhibits ?? [];
  const bins = useMemo(() => binsOf(all.map(({ reward }) => numberOrNull(reward))), [list]);
  const chosenBin = bins.find(({ name }) => name === bin.value);
  const lines = useMemo((): readonly Line[] => {
    const kept = chosenBin
      ? all.filter(({ reward }) => chosenBin.holds(numberOrNull(reward)))
      : all;
    return sortedGroups(groupsOf(kept, all), order.value as Order).flatMap((group): Line[] => [
      { group },
      ...group.members.map((exhibit) => ({ exhibit })),
    ]);
  }, [list, chosenBin?.name, order.value]);
  const rollouts = lines.flatMap(({ exhibit }) => exhibit ?? []);
  const active = useSignal(-1);
  const move = (by: number): void => {
    const now = rollouts.findIndex(({ id }) => id === openId.value);
    const next = rollouts[Math.min(rollouts.length - 1, Math.max(0, now + by))];
    if (!next) return;
    active.value = lines.findIndex(({ exhibit }) => exhibit === next);
    setQuery({ at: next.id });
  };
  useKeys([
    { keys: "j", does: "next rollout", run: () => move(1) },
    { keys: "k", does: "previous rollout", run: () => move(-1) },
    { keys: "Escape", does: "close the rollout", run: () => setQuery({ at: null }) },
  ]);
  if (steps.length === 0) return <NotKept run={run} kind="rollout" />;
  const open = rollouts.find(({ id }) => id === openId.value);
  return (
    <div class="stack">
      <div class="row">
        <StepChoice steps={steps} step={step!} />
        <span class="grow" />
        {list && list.splits.length > 1 && (
          <label class="choice">
            split
            <select
              class="field"
              value={split.value}
              onChange={(event) => setQuery({ split: event.currentTarget.value })}
            >
              <option value="">all</option>
              {list.splits.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="choice">
          order
          <select
            class="field"
            value={order.value}
            onChange={(event) => setQuery({ order: event.currentTarget.value })}
          >
            {orders.map(({ value, name }) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <input
          type="search"
          class="field"
          placeholder="Search the texts"
          aria-label="Search the texts"
          value={search.value}
          onInput={(event) => setQuery({ text: event.currentTarget.value || null })}
        />
      </div>
      {list?.failure && <Failure failure={list.failure} what="the rollouts" />}
      {!list && <Shapes count={3} />}
      {list && (
        <>
          <RewardHistogram
            bins={bins}
            chosen={bin.value}
            choose={(name) => setQuery({ reward: name === bin.value ? null : name })}
          />
          <div class={`split ${open ? "" : "alone"}`}>
            <div class="card" role="list" aria-label="Rollouts">
              <p class="padded muted small tabular">
                {count(rollouts.length)} rollouts
                {list.seen !== null && list.seen > all.length && ` kept of ${count(list.seen)}`}
                {chosenBin && ` with reward ${chosenBin.text}`}
              </p>
              <VirtualList count={lines.length} rowHeight={rowHeight} active={active.value}>
                {(index) => {
                  const line = lines[index]!;
                  return line.exhibit ? (
                    <RolloutRow
                      key={line.exhibit.id}
                      exhibit={line.exhibit}
                      isOpen={line.exhibit === open}
                    />
                  ) : (
                    <GroupLine
                      key={`group ${(line as { group: Group }).group.name}`}
                      group={(line as { group: Group }).group}
                      isSampled={list.seen !== null && list.seen > all.length}
                    />
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

function GroupLine({
  group,
  isSampled,
}: {
  readonly group: Group;
  /** Whether only some rollouts of the step were kept. */
  readonly isSampled: boolean;
}) {
  const { name, mean, deviation, size, hasGradient } = group;
  return (
    <div class="group-line" role="listitem">
      <strong>{name}</strong>
      <span class="tabular muted">
        {count(size)}
        {isSampled && " kept"} · mean{isSampled && " of these"} {figure(mean)} ± {figure(deviation)}
      </span>
      {!hasGradient && (
        <span class="tag" title="All advantages are zero">
          no gradient
        </span>
      )}
    </div>
  );
}

function RolloutRow({
  exhibit,
  isOpen,
}: {
  readonly exhibit: StudioExhibit;
  readonly isOpen: boolean;
}) {
  const advantage = numberOrNull(exhibit.advantage);
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
          #{exhibit.index} · reward <strong>{figure(numberOrNull(exhibit.reward))}</strong>
          {advantage !== null && (
            <span class={advantage > 0 ? "good" : advantage < 0 ? "bad" : ""}>
              {" "}
              A {advantage > 0 ? "+" : ""}
              {figure(advantage)}
            </span>
          )}{" "}
          · {count(exhibit.tokenCount)} tokens
          {exhibit.stopReason && (
            <>
              {" · "}
              <Name>{exhibit.stopReason}</Name>
            </>
          )}
        </span>
      </button>
    </div>
  );
}
