import type { StudioRun } from "tinker-ts/wire/studio";

/** The keys that runs can be grouped by. */
export type Grouping = "" | "group" | "model" | "state" | "kind" | "tag";

/** The choices, with their names. */
export const groupings: readonly { readonly value: Grouping; readonly name: string }[] = [
  { value: "", name: "nothing" },
  { value: "group", name: "group" },
  { value: "model", name: "model" },
  { value: "state", name: "state" },
  { value: "kind", name: "kind" },
  { value: "tag", name: "first tag" },
];

/** A line of the list: a run, or the heading of a group. */
export type Item =
  | { readonly run: StudioRun; readonly name?: undefined; readonly size?: undefined }
  | { readonly run?: undefined; readonly name: string; readonly size: number };

/** The list with a line before each group; the order within a group stays, groups come as their first run does. */
export function grouped(runs: readonly StudioRun[], by: Grouping): readonly Item[] {
  if (by === "") return runs.map((run) => ({ run }));
  const groups = new Map<string, StudioRun[]>();
  for (const run of runs) {
    const name = nameOf(run, by);
    const members = groups.get(name);
    if (members) members.push(run);
    else groups.set(name, [run]);
  }
  return [...groups].flatMap(([name, members]): Item[] => [
    { name, size: members.length },
    ...members.map((run) => ({ run })),
  ]);
}

function nameOf(run: StudioRun, by: Grouping): string {
  if (by === "group") return run.group ?? "without a group";
  if (by === "model") return run.baseModel ?? "unknown model";
  if (by === "state") return run.status;
  if (by === "tag") return run.tags[0] ?? "without a tag";
  return run.kind;
}
