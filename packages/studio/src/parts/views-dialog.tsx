import { useEffect, useState } from "preact/hooks";
import { go } from "../data/location.js";
import { addView, loadViews, removeView, views } from "../data/views.js";
import { visibleName } from "../text/visible.js";
import { Dialog } from "./dialog.js";
import { attempt } from "./toast.js";
import { Name } from "./words.js";

/** The named views, and a form to name the current one. */
export function ViewsDialog({ close }: { readonly close: () => void }) {
  const [name, setName] = useState("");
  useEffect(() => void attempt(loadViews), []);
  return (
    <Dialog title="Views" close={close}>
      {views.value.length === 0 ? (
        <p class="muted">Save the current view under a name. Only you see it.</p>
      ) : (
        <ul class="stack tight named-views">
          {views.value.map((view) => (
            <li key={view.id} class="row">
              <a
                class="grow cut"
                href={view.query}
                onClick={(event) => {
                  event.preventDefault();
                  close();
                  go(view.query);
                }}
              >
                <Name>{view.name}</Name>
              </a>
              <button
                type="button"
                class="button plain"
                aria-label={`Remove ${visibleName(view.name)}`}
                onClick={() => void attempt(() => removeView(view.id))}
              >
                ✕
              </button>
            </li>
          ))}
        </ul>
      )}
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          const query = location.pathname + location.search;
          void attempt(() => addView(name.trim(), query)).then(() => setName(""));
        }}
      >
        <input
          class="field grow"
          aria-label="Name of this view"
          placeholder="Name of this view"
          maxLength={200}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" class="button main" disabled={name.trim() === ""}>
          Save
        </button>
      </form>
    </Dialog>
  );
}
