import { notInBrowser } from "../errors/not-in-browser.js";

/** Refuses: takes the place of local-server.ts in bundles for browsers. */
export async function joinLocalServer(): Promise<never> {
  throw notInBrowser("engine", "pass baseUrl with the address of a server");
}
