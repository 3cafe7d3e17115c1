// Removes everything that a build makes; keeps node_modules.
import { readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { root } from "./ready.mjs";

for (const entry of readdirSync(path.join(root, "packages"))) {
  const folder = path.join(root, "packages", entry);
  rmSync(path.join(folder, "dist"), { recursive: true, force: true });
}
rmSync(path.join(root, ".cache"), { recursive: true, force: true });
