import { effect, signal, type Signal } from "@preact/signals";

/** Themes: fixed, or that of the system. */
export type Theme = "system" | "light" | "dark";

// Only appearance is stored between visits: theme, keys, layout. Views live in the address.
const prefix = "tinker-ts.studio.";

/** The colours of the page. */
export const theme = kept<Theme>("theme", "system");

/** Whether single-key shortcuts are on. */
export const hasSingleKeys = kept("keys", true);

/** Metrics that stay on top in every run. */
export const pinnedMetrics = kept<readonly string[]>("pins", []);

/** Applies the theme to the document. */
export function followTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
}

function kept<T>(name: string, otherwise: T): Signal<T> {
  const key = prefix + name;
  const value = signal<T>(load(key, otherwise));
  effect(() => {
    try {
      if (value.value === otherwise) localStorage.removeItem(key);
      else localStorage.setItem(key, JSON.stringify(value.value));
    } catch {
      // The page works without storage.
    }
  });
  return value;
}

function load<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(key);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}
