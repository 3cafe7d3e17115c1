import { signal, type ReadonlySignal } from "@preact/signals";

const current = signal(Date.now());
setInterval(() => {
  if (!document.hidden) current.value = Date.now();
}, 1000);

/** Now, once a second while the page is seen: for ages of things. */
export const now: ReadonlySignal<number> = current;
