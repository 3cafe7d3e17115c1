import { useState } from "preact/hooks";
import type { StudioRun } from "tinker-ts/wire/studio";
import { label } from "../data/runs.js";
import { Dialog } from "./dialog.js";
import { attempt } from "./toast.js";

/** A dialog for a name, tags or a group. */
export function LabelDialog({
  what,
  runs,
  close,
  done,
}: {
  readonly what: "name" | "tags" | "group";
  readonly runs: readonly StudioRun[];
  readonly close: () => void;
  /** Called when it is saved. */
  readonly done?: () => void;
}) {
  const [first] = runs;
  const [text, setText] = useState(
    what === "name"
      ? (first?.name ?? "")
      : what === "group"
        ? (first?.group ?? "")
        : (first?.tags.join(", ") ?? ""),
  );
  const titles = {
    name: "Rename",
    tags: "Tags, separated by commas",
    group: "Group (empty for none)",
  };
  return (
    <Dialog title={titles[what]} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          const trimmed = text.trim();
          const change =
            what === "name"
              ? { name: trimmed }
              : what === "group"
                ? { group: trimmed || null }
                : {
                    tags: [
                      ...new Set(
                        trimmed
                          .split(",")
                          .map((tag) => tag.trim())
                          .filter(Boolean),
                      ),
                    ],
                  };
          void attempt(() => Promise.all(runs.map(({ id }) => label(id, change)))).then(() => {
            done?.();
            close();
          });
        }}
      >
        <input
          class="field"
          aria-label={titles[what]}
          maxLength={what === "name" ? 200 : 1000}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <div class="row">
          <button
            type="submit"
            class="button main"
            disabled={what === "name" && text.trim() === ""}
          >
            Save
          </button>
          <button type="button" class="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
