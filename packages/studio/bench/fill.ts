import { spawnSync } from "node:child_process";
import path from "node:path";
import type { StudioServer } from "../test/support/server.js";

const root = path.resolve(import.meta.dirname, "../../..");

/** Puts runs with curves of `nll` into the data of a server, which is down meanwhile. */
export async function fill(
  server: StudioServer,
  { runs, points, name }: { readonly runs: number; readonly points: number; readonly name: string },
): Promise<void> {
  await server.kill();
  const script = path.join(root, "packages/server/bench/fill-points.ts");
  const tsx = path.join(root, "node_modules/tsx/dist/cli.mjs");
  const args = [tsx, script, server.dataDir, String(runs), String(points), name];
  const { status } = spawnSync(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error("the runs could not be made");
  await server.start();
}
