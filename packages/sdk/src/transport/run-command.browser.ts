import { notInBrowser } from "../errors/not-in-browser.js";

/** Refuses: takes the place of run-command.ts in bundles for browsers. */
export async function runCommand(_command: string): Promise<string> {
  throw notInBrowser("shell for a credential command", "pass apiKey");
}
