/** One endpoint of the studio. */
export interface StudioRoute {
  /** The HTTP method; anything but GET needs the header `x-tinker-studio: 1`. */
  readonly method: "GET" | "POST" | "DELETE";
  /** Path with `{name}` parameters, which are encoded. */
  readonly path: string;
  /** Names of the query parameters. */
  readonly query?: readonly string[];
}

const run = "/studio/api/runs/{id}";

/** Every endpoint of the studio; `studio.ts` has the types of bodies and answers. */
export const studioRoutes = {
  /** StudioHello. */
  hello: { method: "GET", path: "/studio/api/hello" },
  /** StudioCode. */
  code: { method: "POST", path: "/studio/api/code" },
  /** StudioLogin -> StudioToken. */
  login: { method: "POST", path: "/studio/api/login" },
  /** StudioToken. */
  renew: { method: "POST", path: "/studio/api/renew" },
  /** StudioRuns; `sort` is a field (`updated`, `name`, `step`, `nll.last`, `reward.max`, …), `-` before it reverses it; `ids` repeats. */
  runs: {
    method: "GET",
    path: "/studio/api/runs",
    query: ["q", "sort", "cursor", "limit", "archived", "ids"],
  },
  /** StudioRunDetail. */
  run: { method: "GET", path: run },
  /** Binary, see `readStudioSeries`; `runs` and `keys` repeat. */
  series: {
    method: "GET",
    path: "/studio/api/series",
    query: ["runs", "keys", "x", "from", "to", "buckets"],
  },
  /** All points of all or some series as CSV. */
  csv: { method: "GET", path: `${run}/series.csv`, query: ["keys"] },
  /** StudioExhibits. */
  exhibits: {
    method: "GET",
    path: "/studio/api/exhibits",
    query: ["run", "step", "kind", "split", "group", "order", "q", "cursor", "limit"],
  },
  /** StudioExhibitDetail. */
  exhibit: { method: "GET", path: "/studio/api/exhibits/{id}", query: ["from", "to"] },
  /** StudioSamples -> StudioKept. */
  keepSamples: { method: "POST", path: "/studio/api/samples" },
  /** StudioLog. */
  log: { method: "GET", path: `${run}/log`, query: ["after", "before", "limit", "level", "q"] },
  /** StudioSpans. */
  spans: { method: "GET", path: `${run}/spans`, query: ["from", "to"] },
  /** A file of a run's folder as text or as a download; the name is the rest of the path. */
  file: { method: "GET", path: `${run}/files/{name}` },
  /** Nothing new of the run is begun until `resume`. */
  pause: { method: "POST", path: `${run}/pause` },
  /** Goes on. */
  resume: { method: "POST", path: `${run}/resume` },
  /** StudioStop. */
  stop: { method: "POST", path: `${run}/stop` },
  /** StudioSave -> StudioSaved. */
  save: { method: "POST", path: `${run}/save` },
  /** StudioLabel -> StudioRun. */
  label: { method: "POST", path: `${run}/label` },
  /** StudioSetControls -> StudioControls. */
  controls: { method: "POST", path: `${run}/controls` },
  /** StudioCheckpoints. */
  checkpoints: { method: "GET", path: "/studio/api/checkpoints", query: ["run"] },
  /** StudioMachine. */
  machine: { method: "GET", path: "/studio/api/machine" },
  /** Ends a session with everything that belongs to it. */
  closeSession: { method: "POST", path: "/studio/api/sessions/{id}/close" },
  /** StudioUsage. */
  usage: { method: "GET", path: "/studio/api/usage", query: ["from", "to"] },
  /** StudioViews. */
  views: { method: "GET", path: "/studio/api/views" },
  /** StudioView. */
  addView: { method: "POST", path: "/studio/api/views" },
  /** Nothing. */
  removeView: { method: "DELETE", path: "/studio/api/views/{id}" },
  /** Server-sent StudioEvents; the header `Last-Event-ID` goes on. */
  events: { method: "GET", path: "/studio/api/events", query: ["topics"] },
} as const satisfies Record<string, StudioRoute>;

/** The name of an endpoint of the studio. */
export type StudioRouteName = keyof typeof studioRoutes;
