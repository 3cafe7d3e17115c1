import { signal, type ReadonlySignal } from "@preact/signals";
import type { StudioToken } from "tinker-ts/wire/studio";

// The token lives as long as the tab: `sessionStorage` belongs to host and port and is never sent automatically.
const key = "tinker-ts.studio.token";
const current = signal<StudioToken | null>(load());

/** The token of this page; null without a login. */
export const token: ReadonlySignal<StudioToken | null> = current;

/** Stores a token for this tab, or removes it. */
export function setToken(value: StudioToken | null): void {
  current.value = value;
  try {
    if (value) sessionStorage.setItem(key, JSON.stringify(value));
    else sessionStorage.removeItem(key);
  } catch {
    // Then the login lasts until the page is reloaded.
  }
}

function load(): StudioToken | null {
  try {
    const text = sessionStorage.getItem(key);
    const value = text === null ? null : (JSON.parse(text) as StudioToken);
    return value && value.expiresAt > Date.now() ? value : null;
  } catch {
    return null;
  }
}
