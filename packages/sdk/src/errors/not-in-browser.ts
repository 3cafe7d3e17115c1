import { TinkerError } from "./tinker-error.js";

/*
 * In bundles for browsers this takes the place of modules that need what a browser has not: files, threads,
 * processes. What they export is here, and refuses.
 */

function notInBrowser(what: string, suggestion: string): TinkerError {
  return new TinkerError(`A browser has no ${what}; ${suggestion}.`, { code: "not_in_browser" });
}

function refusing(what: string, suggestion: string) {
  return async (): Promise<never> => {
    throw notInBrowser(what, suggestion);
  };
}

export const findSharedServer = refusing("engine", "pass baseUrl with the address of a server");
export const openInsideServer = findSharedServer;
export const findStudio = refusing("need to look for a studio", "open /studio of the server");
export const runCommand = refusing("shell for a credential command", "pass apiKey");

export const loadTokenizerFrom = refusing(
  "tokenizer",
  "encode texts on a server and pass token ids",
);
export const loadModelTokenizer = loadTokenizerFrom;

export const savedWeights = refusing("folders of runs", "pass a path that starts with tinker://");
export const externalUrls = refusing("need for weights as files", "fetch them on a server");
export const saveExternal = externalUrls;
export const downloadCheckpointTo = refusing(
  "files",
  "use getCheckpointArchiveUrl and fetch the address",
);
export const uploadCheckpoint = downloadCheckpointTo;
export const downloadTo = downloadCheckpointTo;

export const receiveSamplingClient = refusing(
  "thread to hand clients to",
  "create a client in the worker",
);
export const openSamplerHandle = receiveSamplingClient;
export function transferState(): never {
  throw notInBrowser("thread to hand clients to", "create a client in the worker");
}
export const samplerHandle = transferState;
export function SideSamplingClient(): never {
  throw notInBrowser("side thread", "leave sideThread out");
}

/** What servers leave out without a word is looked for outside of browsers alone, where each byte counts less. */
export const checkAdapter = async (): Promise<void> => {};
export const checkClipping = checkAdapter;
export const checkSampling = checkAdapter;
export const noteCutSamples = checkAdapter;
export const describeServer = refusing("need to look at a server", "run tinker-ts doctor");

/** A page gets no signals. */
export const watchProcessEnd = () => ({ seen: undefined, stop: () => {} });

/** Bodies are sent as they are: an implementation of zstd would be larger than the client. */
export const canCompress = false;
export const compressZstd = refusing("zstd", "send bodies as they are");
