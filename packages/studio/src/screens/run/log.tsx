import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { StudioLog, StudioRunDetail } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { queryValue, setQuery } from "../../data/location.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { Shapes } from "../../parts/page.js";
import { count } from "../../text/numbers.js";
import { moment } from "../../text/times.js";
import { visible } from "../../text/visible.js";

const level = queryValue("level");
const search = queryValue("text");
const maxLines = 2000;

/** The text log of a run: its end, followed; searched; errors first when asked. */
export function LogTab({ run }: { readonly run: StudioRunDetail }) {
  const follows = useSignal(true);
  const box = useRef<HTMLPreElement>(null);
  const query = { level: level.value, q: search.value, limit: 500 };
  const key = `${run.id} ${JSON.stringify(query)}`;
  const shown = useRef<{ readonly key: string; readonly log: StudioLog }>(null);
  const { value, failure, reload, patch } = useResource<StudioLog>(
    key,
    async (signal) => {
      const before = shown.current?.key === key ? shown.current.log : null;
      const last = before?.lines.at(-1);
      const more = last ? { after: last.n, limit: maxLines } : {};
      const params = { id: run.id };
      const answer = await call<StudioLog>("log", { params, query: { ...query, ...more }, signal });
      if (!before) return answer;
      return { ...answer, lines: [...before.lines, ...answer.lines].slice(-maxLines) };
    },
    {
      topics: [`run:${run.id}`],
      on: (event) => (event.kind === "log" && event.run === run.id ? "reload" : undefined),
    },
  );
  const log = value.value;
  useEffect(() => {
    shown.current = log ? { key, log } : null;
  }, [log]);
  useEffect(() => {
    if (follows.value && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [log, follows.value]);
  const errors = log?.lines.filter((line) => line.level === "error").length ?? 0;
  const loadEarlier = async (): Promise<void> => {
    const before = log?.lines[0]?.n;
    if (before === undefined) return;
    const more = await call<StudioLog>("log", {
      params: { id: run.id },
      query: { ...query, before },
    });
    follows.value = false;
    patch((known) => ({ ...known, lines: [...more.lines, ...known.lines] }));
  };
  return (
    <div class="stack">
      <div class="row">
        <input
          type="search"
          class="field"
          placeholder="Search the log"
          aria-label="Search the log"
          value={search.value}
          onInput={(event) => setQuery({ text: event.currentTarget.value || null })}
        />
        <label class="choice">
          show
          <select
            class="field"
            value={level.value}
            onChange={(event) => setQuery({ level: event.currentTarget.value })}
          >
            <option value="">everything</option>
            <option value="warning">warnings and errors</option>
            <option value="error">errors</option>
          </select>
        </label>
        <label class="choice">
          <input
            type="checkbox"
            checked={follows.value}
            onChange={(event) => (follows.value = event.currentTarget.checked)}
          />
          follow
        </label>
        {errors > 0 && <span class="bad tabular">{count(errors)} errors</span>}
      </div>
      {failure.value && <Failure failure={failure.value} what="the log" retry={reload} />}
      {!log && !failure.value && <Shapes count={1} height={300} />}
      {log && log.lines.length === 0 && (
        <p class="card padded muted">
          {level.value || search.value
            ? "No matches in the log."
            : "This run has no text log. RunLog writes one, and folders opened with --logs have theirs."}
        </p>
      )}
      {log && log.lines.length > 0 && (
        <>
          {log.lines[0]!.n > 0 && (
            <button type="button" class="button" onClick={() => void loadEarlier()}>
              Earlier lines
            </button>
          )}
          <pre ref={box} class="plain-text log" tabIndex={0} aria-label="Log">
            {log.lines.map(({ n, at, level: kind, text }) => (
              <div key={n} class={kind === "error" ? "bad" : kind === "warning" ? "warn" : ""}>
                {at !== null && <span class="muted">{moment(at)} </span>}
                {visible(text)}
              </div>
            ))}
          </pre>
        </>
      )}
    </div>
  );
}
