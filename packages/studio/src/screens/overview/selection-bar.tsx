import { useState } from "preact/hooks";
import type { StudioRun } from "tinker-ts/wire/studio";
import { setQuery } from "../../data/location.js";
import { label } from "../../data/runs.js";
import { LabelDialog } from "../../parts/label-dialog.js";
import { attempt } from "../../parts/toast.js";
import { count } from "../../text/numbers.js";

/** Actions on the selected runs. */
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
        {areArchived ? "Unarchive" : "Archive"}
      </button>
      <button type="button" class="button plain" onClick={() => setQuery({ selected: null })}>
        Clear selection
      </button>
      {editing && <LabelDialog what={editing} runs={runs} close={() => setEditing(null)} />}
    </div>
  );
}
