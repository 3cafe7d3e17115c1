import { useState } from "preact/hooks";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import { call } from "../../data/api.js";
import { connection } from "../../data/events.js";
import { attempt } from "../../parts/toast.js";
import { Name } from "../../parts/words.js";

/** Requested control values; the loop reads them after a step and decides how to use them. */
export function Controls({ run }: { readonly run: StudioRunDetail }) {
  const [key, setKey] = useState("");
  const [value, setValue] = useState("");
  if (!run.hasControls) return null;
  const isAway = connection.value.state === "waiting";
  const set = (values: Readonly<Record<string, string | number | boolean | null>>): void =>
    void attempt(
      () => call("controls", { params: { id: run.id }, body: { values } }),
      "Requested. The loop reads it with its next log line.",
    );
  return (
    <section class="card padded stack" aria-label="Controls">
      <h2>Controls</h2>
      <p class="muted small">
        Values that the loop reads, such as <code>learning_rate</code>. The server never changes
        requests itself.
      </p>
      <ul class="stack">
        {Object.entries(run.controls.values).map(([name, asked]) => (
          <li key={name} class="row">
            <span class="mono">
              <Name>{name}</Name> = <Name>{String(asked)}</Name>
            </span>
            <button
              type="button"
              class="button plain"
              disabled={isAway}
              onClick={() => set({ [name]: null })}
            >
              Remove
            </button>
          </li>
        ))}
      </ul>
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          set({ [key.trim()]: meant(value) });
          setValue("");
        }}
      >
        <input
          class="field mono"
          aria-label="Name"
          placeholder="name"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        <input
          class="field mono"
          aria-label="Value"
          placeholder="value"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={isAway || key.trim() === "" || value === ""}>
          Set
        </button>
      </form>
    </section>
  );
}

function meant(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}
