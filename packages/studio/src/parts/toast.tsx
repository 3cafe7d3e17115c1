import { signal } from "@preact/signals";
import { visible } from "../text/visible.js";

interface Toast {
  readonly id: number;
  readonly level: "info" | "warning" | "error";
  readonly text: string;
}

const toasts = signal<readonly Toast[]>([]);
let nextId = 0;

/** Shows a message at the edge of the page for a while; an error stays until it is closed. */
export function say(text: string, level: Toast["level"] = "info"): void {
  const toast = { id: nextId++, level, text };
  toasts.value = [...toasts.value.slice(-3), toast];
  if (level !== "error") setTimeout(() => drop(toast.id), 6000);
}

/** Runs an action; a failure is shown as a message. */
export async function attempt(action: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await action();
    if (done) say(done);
    return true;
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), "error");
    return false;
  }
}

/** The messages. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, level, text }) => (
        <div key={id} class={`notice ${level}`}>
          <span class="grow">{visible(text)}</span>
          <button type="button" class="button plain" onClick={() => drop(id)} aria-label="Close">
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}

function drop(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}
