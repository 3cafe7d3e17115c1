import { setTimeout as delay } from "node:timers/promises";
import { DataDirectoryInUseError } from "../store/data-lock.js";
import { handoverPath } from "./local-pages.js";

/** Longest time the local server may take to finish what it computes. */
const handoverMs = 60_000;

/** Opens a data directory; a local server that has it is asked to end first. Other holders keep it. */
export async function takeOver<T>(open: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + handoverMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof DataDirectoryInUseError)) throw error;
      const { holder } = error;
      if (holder?.kind !== "local" || performance.now() > deadline) throw error;
      if (holder.url !== null) {
        const headers = { "x-api-key": holder.key ?? "" };
        // One that ends at this moment refuses the connection.
        await fetch(holder.url + handoverPath, { method: "POST", headers }).catch(() => {});
      }
      await delay(100);
    }
  }
}
