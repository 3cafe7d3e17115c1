import { notInBrowser } from "../../runtime/not-in-browser.js";

/** Refuses: takes the place of side-sampling-client.ts in bundles for browsers. */
export class SideSamplingClient {
  constructor() {
    throw notInBrowser("side thread", "leave sideThread out");
  }
}
