import { useLayoutEffect } from "preact/hooks";
import { hasSingleKeys } from "./settings.js";

/** A key binding of a screen. */
export interface KeyBinding {
  /** `j`, `Enter`, `g r`, `ArrowLeft`. */
  readonly keys: string;
  /** Description for the list of keys. */
  readonly does: string;
  readonly run: (event: KeyboardEvent) => void;
}

const bindings = new Set<readonly KeyBinding[]>();
let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

/** All current key bindings. */
export function currentKeys(): readonly KeyBinding[] {
  return [...bindings].flat();
}

/** Binds keys while a component is mounted. */
export function useKeys(keys: readonly KeyBinding[]): void {
  // At once, so that keys work as soon as the screen is visible.
  useLayoutEffect(() => {
    bindings.add(keys);
    return () => void bindings.delete(keys);
  });
}

/** Listens to the keyboard; text fields keep their own keys. */
export function followKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!hasSingleKeys.value && event.key.length === 1) return;
    const target = event.target as HTMLElement | null;
    if (isTyping(target) && event.key !== "Escape") return;
    // Enter and space belong to what has the focus.
    if (
      (event.key === "Enter" || event.key === " ") &&
      target?.closest("a,button,summary,[role=slider]")
    )
      return;
    if (document.querySelector("dialog[open]")) return; // it closes by itself
    const pressed = prefix ? `${prefix} ${event.key}` : event.key;
    clearTimeout(prefixTimer);
    prefix = "";
    const all = currentKeys();
    const found = all.findLast(({ keys }) => keys === pressed);
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (all.some(({ keys }) => keys.startsWith(`${event.key} `))) {
      prefix = event.key;
      prefixTimer = setTimeout(() => (prefix = ""), 1000);
    }
  });
}

function isTyping(target: HTMLElement | null): boolean {
  if (!target) return false;
  if (target.isContentEditable || target.tagName === "TEXTAREA" || target.tagName === "SELECT")
    return true;
  if (target.tagName !== "INPUT") return false;
  return !["checkbox", "radio", "button", "range"].includes((target as HTMLInputElement).type);
}
