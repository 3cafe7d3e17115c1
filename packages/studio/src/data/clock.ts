import { signal, type ReadonlySignal } from "@preact/signals";

const current = signal(Date.now());
setInterval(() => {
  if (!document.hidden) current.value = Date.now();
}, 1000);

/** Now, once a second while the page is visible; for relative times. */
export const now: ReadonlySignal<number> = current;
