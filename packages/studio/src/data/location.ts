import { computed, signal, type ReadonlySignal } from "@preact/signals";

// The address bar is the state of every view: a link restores it in a fresh browser. Choosing another screen or
// another thing adds to the history, turning a knob replaces the last entry, so that Back leaves the screen.

const base = "/studio";

/** The location of the page. */
export interface Place {
  /** The path below `/studio`, without slashes at its ends. */
  readonly path: string;
  /** The parameters of the query string. */
  readonly query: URLSearchParams;
}

const current = signal<Place>(read());

/** The current location. */
export const place: ReadonlySignal<Place> = current;

/** The parts of the path, decoded. */
export const segments = computed(() => current.value.path.split("/").map(decode));

/** Navigates to another view. */
export function go(target: string): void {
  history.pushState(null, "", target);
  current.value = read();
  scrollTo(0, 0);
}

/** Changes parameters of the query string; null removes one. */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
  { push = false }: { readonly push?: boolean } = {},
): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  const target = `${location.pathname}${queryText(query)}`;
  if (target === location.pathname + location.search) return;
  if (push) history.pushState(null, "", target);
  else history.replaceState(null, "", target);
  current.value = read();
}

/** The address of a view: `link("runs/a", { tab: "data" })`. */
export function link(
  path: string,
  query: Readonly<Record<string, string | number | null | undefined>> = {},
): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  return `${base}${path ? `/${path}` : ""}${queryText(search)}`;
}

/** One part of the query string as text. */
export function queryValue(name: string, otherwise = ""): ReadonlySignal<string> {
  return computed(() => current.value.query.get(name) ?? otherwise);
}

/** Follows Back and Forward, and clicks on links inside the studio. */
export function followHistory(): void {
  addEventListener("popstate", () => (current.value = read()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const anchor = (event.target as Element | null)?.closest?.("a");
    if (!anchor || anchor.target || anchor.hasAttribute("download")) return;
    const url = new URL(anchor.href, location.href);
    if (url.origin !== location.origin || !`${url.pathname}/`.startsWith(`${base}/`)) return;
    if (url.pathname.startsWith(`${base}/api/`)) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
}

function read(): Place {
  return {
    path: location.pathname.slice(base.length).replace(/^\/+|\/+$/g, ""),
    query: new URLSearchParams(location.search),
  };
}

// Commas, colons and slashes stay readable: people share links.
function queryText(query: URLSearchParams): string {
  const text = query
    .toString()
    .replace(/%2C/gi, ",")
    .replace(/%3A/gi, ":")
    .replace(/%2F/gi, "/")
    .replace(/%2A/gi, "*");
  return text ? `?${text}` : "";
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
