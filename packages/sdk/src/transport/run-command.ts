import { onAbort, type Cancellation } from "../runtime/cancellation.js";

/**
 * Runs a command of the shell and returns what it prints; exit status and stderr do not matter. One that
 * is aborted is ended.
 */
export async function runCommand(command: string, signal?: Cancellation): Promise<string> {
  const { exec } = await import("node:child_process");
  signal?.throwIfAborted();
  return new Promise<string>((resolve, reject) => {
    const child = exec(command, { encoding: "utf8", windowsHide: true }, (_, stdout) => {
      stopListening();
      resolve(stdout);
    });
    const stopListening = onAbort(signal, (reason) => {
      child.kill();
      reject(reason);
    });
  });
}
