import { useEffect, useState } from "preact/hooks";
import { link } from "../../data/location.js";
import { addView, loadViews, views } from "../../data/views.js";
import { Dialog } from "../../parts/dialog.js";
import { attempt } from "../../parts/toast.js";
import { visibleName } from "../../text/visible.js";

/** A prompt with its system prompt. */
export interface SavedPrompt {
  readonly prompt: string;
  readonly system: string;
}

const screen = link("playground");

/** Saved prompts: each is a named view of the playground. */
export function SavedPrompts({
  current,
  choose,
}: {
  readonly current: SavedPrompt;
  readonly choose: (saved: SavedPrompt) => void;
}) {
  const [name, setName] = useState<string | null>(null);
  useEffect(() => void attempt(loadViews), []);
  const saved = views.value.flatMap((view) => {
    const url = new URL(view.query, location.origin);
    const prompt = url.pathname === screen ? url.searchParams.get("prompt") : null;
    if (prompt === null) return [];
    return { ...view, prompt, system: url.searchParams.get("system") ?? "" };
  });
  return (
    <>
      {saved.length > 0 && (
        <select
          class="field saved-prompts"
          aria-label="Saved prompts"
          value=""
          onChange={(event) => {
            const found = saved.find(({ id }) => id === event.currentTarget.value);
            if (found) choose(found);
          }}
        >
          <option value="">saved prompts …</option>
          {saved.map(({ id, name: text }) => (
            <option key={id} value={id}>
              {visibleName(text)}
            </option>
          ))}
        </select>
      )}
      <button
        type="button"
        class="button plain"
        disabled={current.prompt.trim() === ""}
        onClick={() => setName(current.prompt.trim().slice(0, 60))}
      >
        Save prompt
      </button>
      {name !== null && (
        <Dialog title="Save this prompt" close={() => setName(null)}>
          <form
            class="row"
            onSubmit={(event) => {
              event.preventDefault();
              const { prompt, system } = current;
              const query = link("playground", { prompt, system });
              void attempt(() => addView(name.trim(), query), "Saved.").then(() => setName(null));
            }}
          >
            <input
              class="field grow"
              aria-label="Name of the prompt"
              maxLength={200}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
            <button type="submit" class="button main" disabled={name.trim() === ""}>
              Save
            </button>
          </form>
        </Dialog>
      )}
    </>
  );
}
