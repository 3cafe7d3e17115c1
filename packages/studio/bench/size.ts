import { loadStudioAssets } from "@tinker-ts/studio";
import { budget } from "./budget.js";

/** 58: what is sent to a browser. */
export async function reportSize(): Promise<void> {
  const assets = await loadStudioAssets();
  const page = Buffer.from(assets.get("index.html")!.bytes).toString("utf8");
  const kilobytes = (names: readonly string[]): number =>
    names.reduce((sum, name) => sum + assets.get(name)!.packed.gzip.byteLength, 0) / 1000;
  const all = [...assets.keys()];
  const first = all.filter((name) => name === "index.html" || page.includes(name));
  budget("58", "shell and overview, gzip", kilobytes(first), 60, "kB");
  budget("58", "everything, gzip", kilobytes(all), 100, "kB");
  budget("58", "largest part, gzip", Math.max(...all.map((name) => kilobytes([name]))), 45, "kB");
}
