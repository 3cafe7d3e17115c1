import { useState } from "preact/hooks";
import type { StudioRun } from "tinker-ts/wire/studio";
import { setQuery } from "../../data/location.js";
import { label } from "../../data/runs.js";
import { Dialog } from "../../parts/dialog.js";
import { attempt } from "../../parts/toast.js";
import { count } from "../../text/numbers.js";

/** What can be done with the selected runs. */
export function SelectionBar({
  ids,
  runs,
  compare,
}: {
  readonly ids: readonly string[];
  readonly runs: readonly StudioRun[];
  readonly compare: () => void;
}) {
  const [editing, setEditing] = useState<"name" | "tags" | "group" | null>(null);
  const arePinned = runs.length > 0 && runs.every(({ isPinned }) => isPinned);
  const areArchived = runs.length > 0 && runs.every(({ archivedAt }) => archivedAt !== null);
  const all = (change: Parameters<typeof label>[1]): void =>
    void attempt(() => Promise.all(runs.map(({ id }) => label(id, change))));
  return (
    <div class="selection card" role="toolbar" aria-label="Selected runs">
      <strong class="tabular">{count(ids.length)} selected</strong>
      <button type="button" class="button main" onClick={compare}>
        Compare
      </button>
      {runs.length === 1 && (
        <button type="button" class="button" onClick={() => setEditing("name")}>
          Rename
        </button>
      )}
      <button type="button" class="button" onClick={() => setEditing("tags")}>
        Tag
      </button>
      <button type="button" class="button" onClick={() => setEditing("group")}>
        Group
      </button>
      <button type="button" class="button" onClick={() => all({ isPinned: !arePinned })}>
        {arePinned ? "Unpin" : "Pin"}
      </button>
      <button type="button" class="button" onClick={() => all({ isArchived: !areArchived })}>
        {areArchived ? "Take out of the archive" : "Archive"}
      </button>
      <button type="button" class="button plain" onClick={() => setQuery({ selected: null })}>
        Select nothing
      </button>
      {editing && <LabelDialog what={editing} runs={runs} close={() => setEditing(null)} />}
    </div>
  );
}

/** Asks for a name, for tags or for a group. */
export function LabelDialog({
  what,
  runs,
  close,
}: {
  readonly what: "name" | "tags" | "group";
  readonly runs: readonly StudioRun[];
  readonly close: () => void;
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
    tags: "Tags, with commas between",
    group: "Group; empty for none",
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
          void attempt(() => Promise.all(runs.map(({ id }) => label(id, change)))).then(close);
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
