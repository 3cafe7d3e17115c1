import { computed, signal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { StudioCheckpoints, StudioSamples } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import type { ChatMessage } from "../../data/completions.js";
import { connection } from "../../data/events.js";
import { useKeys } from "../../data/keys.js";
import { place, queryValue, setQuery } from "../../data/location.js";
import { hello } from "../../data/login.js";
import { useResource } from "../../data/resource.js";
import { Failure } from "../../parts/failure.js";
import { Column, type ColumnState, newColumn } from "./column.js";
import { ask, type PlaygroundSettings } from "./ask.js";
import { SavedPrompts, type SavedPrompt } from "./saved-prompts.js";
import "./playground.css";

const columnsText = queryValue("columns");
const runId = queryValue("run");
const mode = queryValue("mode", "chat");
const numbers = {
  temp: queryValue("temp", "0.7"),
  max: queryValue("max", "256"),
  seed: queryValue("seed"),
  n: queryValue("n", "1"),
  stop: queryValue("stop"),
};
const system = signal("");
const prompt = signal("");
const columns: Signal<readonly ColumnState[]> = signal([]);
const shownTab = signal(0);
const isBusy = computed(() => columns.value.some(({ answer }) => answer.value?.isRunning));

/** One prompt for the base model and for checkpoints of it, side by side. */
export function Playground() {
  const field = useRef<HTMLTextAreaElement>(null);
  const { value, failure, reload } = useResource<StudioCheckpoints>(
    "checkpoints",
    (abort) => call("checkpoints", { signal: abort }),
    { on: (event) => (event.kind === "checkpoint" ? "reload" : undefined) },
  );
  const samplers = value.value?.checkpoints.filter((one) => one.kind === "sampler") ?? [];
  const models = hello.value?.models ?? [];
  useEffect(() => {
    document.title = "Playground · Studio";
  }, []);
  // The weights: those of the address; for a run its base model and its last sampler; else the newest.
  const wanted = columnsText.value.split(",").filter(Boolean);
  const isKnown = value.value !== undefined || failure.value !== undefined;
  const ofRun = runId.value
    ? samplers.filter(({ run, model }) => run === runId.value || model === runId.value)
    : samplers;
  const [newest] = ofRun;
  const chosen =
    wanted.length > 0
      ? wanted
      : newest
        ? [newest.baseModel, newest.path]
        : models.length > 0
          ? [models[0]!]
          : [];
  const names = chosen.join(",");
  // At once, so that a sent prompt finds its columns.
  useLayoutEffect(() => {
    if (!isKnown && wanted.length === 0) return;
    columns.value = chosen.map((weights, index) => {
      const old = columns.value[index];
      return old?.weights === weights ? old : newColumn(weights);
    });
  }, [names, isKnown]);
  const canSend =
    prompt.value.trim() !== "" && columns.value.length > 0 && connection.value.state !== "waiting";
  const submit = (): void => {
    if (!canSend || isBusy.value) return;
    const settings = readSettings();
    const text = prompt.value;
    const asked = columns.value;
    void Promise.all(asked.map((column) => ask(column, text, settings))).then(() => keep(asked));
    if (settings.mode === "chat") prompt.value = "";
    field.current?.focus();
  };
  const stop = (): void => {
    for (const { answer } of columns.value) answer.value?.abort.abort();
  };
  useKeys([{ keys: "Escape", does: "stop generation", run: stop }]);
  // A prompt from the address fills the field once; later edits are the user's.
  const brought = place.value.query;
  useEffect(() => {
    if (!brought.has("prompt")) return;
    fill({ prompt: brought.get("prompt") ?? "", system: brought.get("system") ?? "" });
    setQuery({ prompt: null, system: null });
  }, [brought]);
  const set = (index: number, weights: string | null): void => {
    const next =
      weights === null ? chosen.toSpliced(index, 1) : chosen.toSpliced(index, 1, weights);
    setQuery({ columns: next.join(","), run: null });
  };
  return (
    <div class="stack playground">
      <div class="row">
        <h1>Playground</h1>
        <span class="grow" />
        <Knob name="temp" text="temperature" step={0.1} min={0} />
        <Knob name="max" text="max tokens" step={1} min={1} />
        <Knob name="seed" text="seed" step={1} min={0} placeholder="any" />
        <Knob name="n" text="n" step={1} min={1} />
        <label class="choice">
          stop
          <input
            class="field knob"
            value={numbers.stop.value}
            placeholder="none"
            onInput={(event) => setQuery({ stop: event.currentTarget.value })}
          />
        </label>
        <label class="choice">
          <select
            class="field"
            aria-label="Chat or complete"
            value={mode.value}
            onChange={(event) =>
              setQuery({ mode: event.currentTarget.value === "chat" ? null : "complete" })
            }
          >
            <option value="chat">chat</option>
            <option value="complete">complete a text</option>
          </select>
        </label>
      </div>
      {failure.value && <Failure failure={failure.value} what="the checkpoints" retry={reload} />}
      {mode.value === "chat" && (
        <label class="stack tight">
          <span class="unseen">System prompt</span>
          <input
            class="field"
            placeholder="System prompt (optional)"
            value={system.value}
            onInput={(event) => (system.value = event.currentTarget.value)}
          />
        </label>
      )}
      <div class="tabs column-tabs" role="group" aria-label="Columns">
        {columns.value.map((column, index) => (
          <button
            key={`${index} ${column.weights}`}
            type="button"
            class="button"
            aria-pressed={shownTab.value === index}
            onClick={() => (shownTab.value = index)}
          >
            {column.weights.startsWith("tinker://")
              ? column.weights.split("/").at(-1)
              : `base: ${column.weights}`}
          </button>
        ))}
      </div>
      <div class="columns">
        {columns.value.map((column, index) => (
          <Column
            key={`${index} ${column.weights}`}
            column={column}
            isShown={shownTab.value === index}
            models={models}
            samplers={samplers}
            choose={(weights) => set(index, weights)}
            {...(columns.value.length > 1 ? { remove: () => set(index, null) } : {})}
          />
        ))}
        {columns.value.length < 6 && (
          <button
            type="button"
            class="button add-column"
            aria-label="Add a column"
            title="Add a column"
            onClick={() =>
              setQuery({
                columns: [...chosen, chosen.at(-1) ?? models[0] ?? ""].join(","),
                run: null,
              })
            }
          >
            +
          </button>
        )}
      </div>
      <form
        class="prompt card"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <textarea
          ref={field}
          class="field"
          rows={3}
          aria-label="Prompt"
          placeholder={
            mode.value === "chat" ? "Message all models" : "Text for all models to continue"
          }
          value={prompt.value}
          onInput={(event) => (prompt.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              submit();
            }
          }}
        />
        <div class="row">
          {isBusy.value ? (
            <button type="button" class="button danger" onClick={stop}>
              ■ Stop
            </button>
          ) : (
            <button type="submit" class="button main" disabled={!canSend}>
              Send
            </button>
          )}
          <span class="muted small">
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </span>
          <span class="grow" />
          <SavedPrompts
            current={{ prompt: prompt.value, system: system.value }}
            choose={(saved) => {
              fill(saved);
              field.current?.focus();
            }}
          />
          <button
            type="button"
            class="button plain"
            onClick={() => {
              stop();
              columns.value = columns.value.map(({ weights }) => newColumn(weights));
            }}
          >
            New conversation
          </button>
        </div>
      </form>
    </div>
  );
}

function fill(saved: SavedPrompt): void {
  prompt.value = saved.prompt;
  system.value = saved.system;
}

/** Stores answers with the runs of their checkpoints; a failure is ignored. */
async function keep(asked: readonly ColumnState[]): Promise<void> {
  const answers = asked.flatMap(({ weights, answer: { value } }) => {
    if (!value || value.samples.length === 0) return [];
    return {
      weights,
      promptTokens: value.promptTokens,
      samples: value.samples.map(({ tokens, finish }) => {
        const known = tokens.filter(({ id }) => id !== null);
        return {
          tokens: known.map(({ id }) => id!),
          logprobs: known.map(({ logprob }) => logprob),
          stopReason: finish,
        };
      }),
    };
  });
  if (!answers.some(({ weights }) => weights.startsWith("tinker://"))) return;
  const body: StudioSamples = { answers };
  await call("keepSamples", { body }).catch(() => undefined);
}

function readSettings(): PlaygroundSettings {
  const number = (text: string, otherwise: number): number =>
    Number.isFinite(Number(text)) && text !== "" ? Number(text) : otherwise;
  const start: readonly ChatMessage[] = system.value.trim()
    ? [{ role: "system", content: system.value }]
    : [];
  return {
    mode: mode.value === "complete" ? "complete" : "chat",
    start,
    temperature: number(numbers.temp.value, 0.7),
    maxTokens: Math.max(1, number(numbers.max.value, 256)),
    seed: numbers.seed.value === "" ? null : number(numbers.seed.value, 0),
    samples: Math.max(1, number(numbers.n.value, 1)),
    stop: numbers.stop.value ? [numbers.stop.value.replaceAll("\\n", "\n")] : [],
  };
}

function Knob({
  name,
  text,
  ...rest
}: {
  readonly name: keyof typeof numbers;
  readonly text: string;
  readonly step: number;
  readonly min: number;
  readonly placeholder?: string;
}) {
  return (
    <label class="choice">
      {text}
      <input
        type="number"
        class="field knob tabular"
        value={numbers[name].value}
        onInput={(event) => setQuery({ [name]: event.currentTarget.value })}
        {...rest}
      />
    </label>
  );
}
