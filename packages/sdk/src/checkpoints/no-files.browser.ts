import { notInBrowser } from "../errors/not-in-browser.js";

/*
 * Takes the place of what reads and writes files in bundles for browsers.
 */

const refuse = async (): Promise<never> => {
  throw notInBrowser("files", "use getCheckpointArchiveUrl and fetch the address");
};

export const downloadCheckpointTo = refuse;
export const uploadCheckpoint = refuse;
export const downloadTo = refuse;
