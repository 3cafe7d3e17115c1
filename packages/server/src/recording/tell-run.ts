import type { StudioEvent } from "tinker-ts/wire";
import type { Store } from "../store/store.js";
import type { EventHub } from "./event-hub.js";

/** Tells the pages of a run of something, and those of the run that watches it. */
export function tellRun(
  { hub, store }: { readonly hub: EventHub; readonly store: Store },
  owner: string,
  logId: string,
  eventOf: (run: string) => StudioEvent,
): void {
  const watching = hub.isWatched ? store.logs.logOfModel(logId) : undefined;
  for (const run of watching === undefined ? [logId] : [logId, watching])
    hub.publish(owner, `run:${run}`, eventOf(run));
}
