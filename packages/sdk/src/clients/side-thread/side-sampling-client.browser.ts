import { notInBrowser } from "../../errors/not-in-browser.js";

/** Refuses: takes the place of side-sampling-client.ts in bundles for browsers. */
export function SideSamplingClient(): never {
  throw notInBrowser("side thread", "leave sideThread out");
}
