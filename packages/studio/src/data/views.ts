import { signal, type ReadonlySignal } from "@preact/signals";
import type { StudioView, StudioViews } from "tinker-ts/wire/studio";
import { call } from "./api.js";

const state = signal<readonly StudioView[]>([]);

/** Named views, as loaded so far. */
export const views: ReadonlySignal<readonly StudioView[]> = state;

/** Loads them. */
export async function loadViews(): Promise<void> {
  state.value = (await call<StudioViews>("views")).views;
}

/** Names an address within the studio. */
export async function addView(name: string, query: string): Promise<void> {
  await call("addView", { body: { name, query } });
  await loadViews();
}

/** Removes a named view. */
export async function removeView(id: string): Promise<void> {
  await call("removeView", { params: { id } });
  await loadViews();
}
