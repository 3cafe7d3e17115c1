import { TinkerError } from "./tinker-error.js";

/** The error of what a browser has no means for. */
export function notInBrowser(what: string, wayOut: string): TinkerError {
  return new TinkerError(`A browser has no ${what}; ${wayOut}.`, { code: "not_in_browser" });
}
