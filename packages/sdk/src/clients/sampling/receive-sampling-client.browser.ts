import { notInBrowser } from "../../errors/not-in-browser.js";

/** Refuses: takes the place of receive-sampling-client.ts in bundles for browsers. */
export async function receiveSamplingClient(): Promise<never> {
  throw notInBrowser("thread to hand clients to", "create a client in the worker");
}
