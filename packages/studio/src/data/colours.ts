import { computed, signal } from "@preact/signals";
import { theme } from "./settings.js";

// Safe for colour-blind eyes (Okabe and Ito, with lightness set per theme). A run's colour depends on its id alone,
// so it is the same on every screen, after a reload and for ever.
const light = ["#0b6bb0", "#c2410c", "#0f7a5f", "#a8327e", "#8a6100", "#4f46b8", "#0e7490"];
const dark = ["#5ab0f2", "#f59e5b", "#3ecf9f", "#e58bc4", "#e0c050", "#a5a0f5", "#5cc8dc"];

/** The stroke of a run. */
export interface Stroke {
  readonly colour: string;
  /** Dashes of the line; empty for a solid one. */
  readonly dash: readonly number[];
}

const dashes: readonly (readonly number[])[] = [[], [7, 3], [2, 3], [8, 3, 2, 3]];

const systemDark = signal(matchMedia("(prefers-color-scheme: dark)").matches);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  systemDark.value = event.matches;
});

/** Whether the page is dark now. */
export const isDark = computed(
  () => theme.value === "dark" || (theme.value === "system" && systemDark.value),
);

/** The colour of a run. */
export function colourOf(id: string): string {
  const palette = isDark.value ? dark : light;
  return palette[hash(id) % palette.length]!;
}

/** Strokes of runs that are shown together: runs of one colour differ in their dashes. */
export function strokesOf(ids: readonly string[]): Map<string, Stroke> {
  const taken = new Map<string, number>();
  return new Map(
    ids.map((id) => {
      const colour = colourOf(id);
      const times = taken.get(colour) ?? 0;
      taken.set(colour, times + 1);
      // Beyond the easily distinguished patterns, at least no two are the same.
      return [id, { colour, dash: dashes[times] ?? [times * 3, 3] }];
    }),
  );
}

function hash(text: string): number {
  let value = 2166136261;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 16777619) >>> 0;
  }
  // The low bits of neighbouring names differ little.
  value ^= value >>> 15;
  return Math.imul(value, 2246822507) >>> 0;
}
