import { signal } from "@preact/signals";
import { currentKeys } from "../data/keys.js";
import { hasSingleKeys } from "../data/settings.js";
import { Dialog } from "./dialog.js";

/** Whether the list of keys is shown. */
export const keysDialogOpen = signal(false);

/** Every key of this screen, and the switch that turns single keys off. */
export function KeysDialog() {
  const keys = new Map(currentKeys().map((binding) => [binding.keys, binding.does]));
  return (
    <Dialog title="Keys" close={() => (keysDialogOpen.value = false)}>
      <dl class="keys">
        {[...keys].map(([key, does]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((part) => (
                <kbd key={part}>{part}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <label class="choice">
        <input
          type="checkbox"
          checked={hasSingleKeys.value}
          onChange={(event) => (hasSingleKeys.value = event.currentTarget.checked)}
        />
        single-key shortcuts
      </label>
      <form method="dialog">
        <button type="submit" class="button">
          Close
        </button>
      </form>
    </Dialog>
  );
}
