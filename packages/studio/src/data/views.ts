import { signal, type ReadonlySignal } from "@preact/signals";
import type { StudioView, StudioViews } from "tinker-ts/wire/studio";
import { call } from "./api.js";

const state = signal<readonly StudioView[]>([]);

/** Views that somebody has named, as far as they are known. */
export const views: ReadonlySignal<readonly StudioView[]> = state;

/** Asks for them. */
export async function loadViews(): Promise<void> {
  state.value = (await call<StudioViews>("views")).views;
}

/** Names an address within the studio. */
export async function addView(name: string, query: string): Promise<void> {
  await call("addView", { body: { name, query } });
  await loadViews();
}

/** Forgets a name. */
export async function removeView(id: string): Promise<void> {
  await call("removeView", { params: { id } });
  await loadViews();
}
