import { computed, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { StudioRun } from "tinker-ts/wire/studio";
import { useKeys } from "../../data/keys.js";
import { go, link, queryValue, setQuery } from "../../data/location.js";
import { askForRuns, label, reloadRuns, runList } from "../../data/runs.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { attempt } from "../../parts/toast.js";
import { VirtualList } from "../../parts/virtual-list.js";
import { count } from "../../text/numbers.js";
import { NoRuns } from "./no-runs.js";
import { grouped, groupings, type Grouping } from "./grouping.js";
import { HeaderRow } from "./header-row.js";
import { GroupRow, RunRow } from "./run-row.js";
import { SelectionBar } from "./selection-bar.js";
import { Welcome } from "./welcome.js";
import "./overview.css";

const q = queryValue("q");
const sort = queryValue("sort", "-updated");
const group = queryValue("group");
const archived = queryValue("archived");
const selectedText = queryValue("selected");
const selected = computed(() => new Set(selectedText.value.split(",").filter(Boolean)));
const active = signal(-1);
const isNarrow = signal(matchMedia("(max-width: 720px)").matches);
matchMedia("(max-width: 720px)").addEventListener(
  "change",
  (event) => (isNarrow.value = event.matches),
);

const rowHeights = { wide: 48, narrow: 118 };

/** All runs: filter, sort, group, select. */
export function Overview() {
  useEffect(() => {
    document.title = "Runs · Studio";
  }, []);
  const query = { q: q.value, sort: sort.value, archived: archived.value === "1" };
  useEffect(() => askForRuns(query), [query.q, query.sort, query.archived]);
  const list = runList.value;
  const items = useMemo(
    () => (list ? grouped(list.runs, group.value as Grouping) : []),
    [list?.runs, group.value],
  );
  const activeRun = (): StudioRun | undefined => items[active.value]?.run;
  const move = (by: number): void => {
    let next = active.value + by;
    while (items[next] && !items[next]!.run) next += by;
    if (items[next]) active.value = next;
  };
  useKeys([
    { keys: "j", does: "next run", run: () => move(1) },
    { keys: "k", does: "previous run", run: () => move(-1) },
    {
      keys: "Enter",
      does: "open the run",
      run: () => {
        const run = activeRun();
        if (run) go(link(`runs/${encodeURIComponent(run.id)}`));
      },
    },
    {
      keys: "x",
      does: "select the run",
      run: () => {
        const run = activeRun();
        if (run) toggle(run.id);
      },
    },
    { keys: "c", does: "compare the selected runs", run: compareSelected },
    {
      keys: "p",
      does: "pin the run",
      run: () => {
        const run = activeRun();
        if (run) void attempt(() => label(run.id, { isPinned: !run.isPinned }));
      },
    },
    { keys: "Escape", does: "clear selection", run: () => setQuery({ selected: null }) },
  ]);
  if (!list) return <Shapes count={6} height={44} />;
  const isEverything = q.value === "" && archived.value !== "1";
  if (list.runs.length === 0 && list.isWhole && isEverything && !list.failure) return <NoRuns />;
  return (
    <div class="stack">
      <h1 class="unseen">Runs</h1>
      {list.failure && <Failure failure={list.failure} what="the runs" retry={reloadRuns} />}
      {isEverything && list.isWhole && list.runs.length <= 3 && <Welcome runs={list.runs} />}
      <div class="row controls">
        <span class="muted tabular">
          {count(list.runs.length)}
          {list.isWhole ? "" : "+"} {list.runs.length === 1 ? "run" : "runs"}
          {q.value && " found"}
        </span>
        <span class="grow" />
        <label class="choice">
          group by
          <select
            class="field"
            value={group.value}
            onChange={(event) => setQuery({ group: event.currentTarget.value })}
          >
            {groupings.map(({ value, name }) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <SortChoice />
        <label class="choice">
          <input
            type="checkbox"
            checked={archived.value === "1"}
            onChange={(event) => setQuery({ archived: event.currentTarget.checked ? "1" : null })}
          />
          include archived
        </label>
      </div>
      {list.runs.length === 0 ? (
        <div class="card padded muted">
          No matches. Words search names, tags and models; <code>state:running</code>,{" "}
          <code>model:qwen</code>, <code>tag:sft</code> and <code>lr&gt;1e-4</code> filter by field.
        </div>
      ) : (
        <div class="card runs" role="table" aria-label="Runs" aria-rowcount={items.length + 1}>
          <HeaderRow sort={sort.value} />
          <VirtualList
            role="rowgroup"
            count={items.length}
            rowHeight={isNarrow.value ? rowHeights.narrow : rowHeights.wide}
            active={active.value}
          >
            {(index) => {
              const item = items[index]!;
              return item.run ? (
                <RunRow
                  key={item.run.id}
                  run={item.run}
                  isActive={index === active.value}
                  isSelected={selected.value.has(item.run.id)}
                  toggle={toggle}
                />
              ) : (
                <GroupRow key={`group ${item.name}`} name={item.name} size={item.size} />
              );
            }}
          </VirtualList>
        </div>
      )}
      {selected.value.size > 0 && (
        <SelectionBar
          ids={[...selected.value]}
          runs={list.runs.filter(({ id }) => selected.value.has(id))}
          compare={compareSelected}
        />
      )}
    </div>
  );
}

const sorts: readonly { value: string; name: string }[] = [
  { value: "-updated", name: "last changed" },
  { value: "-created", name: "newest" },
  { value: "name", name: "name" },
  { value: "-step", name: "steps" },
  { value: "nll.last", name: "nll, last" },
  { value: "nll.smoothedLast", name: "nll, smoothed last" },
  { value: "nll.min", name: "nll, minimum" },
  { value: "nll.max", name: "nll, maximum" },
  { value: "-reward.last", name: "reward, last" },
  { value: "-reward.smoothedLast", name: "reward, smoothed last" },
  { value: "-reward.max", name: "reward, maximum" },
  { value: "-reward.min", name: "reward, minimum" },
];

function SortChoice() {
  const isListed = sorts.some(({ value }) => value === sort.value);
  return (
    <label class="choice">
      sort by
      <select
        class="field"
        value={sort.value}
        onChange={(event) => setQuery({ sort: event.currentTarget.value })}
      >
        {!isListed && (
          <option value={sort.value}>{sort.value.replace(/^-/, "")}, turned round</option>
        )}
        {sorts.map(({ value, name }) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

function toggle(id: string): void {
  const next = new Set(selected.value);
  if (!next.delete(id)) next.add(id);
  setQuery({ selected: [...next].join(",") });
}

function compareSelected(): void {
  if (selected.value.size > 0) go(link("compare", { runs: [...selected.value].join(",") }));
}
