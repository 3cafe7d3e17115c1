// Builds the page into dist/assets, with compressed copies beside every file. Does nothing when nothing changed.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const stamp = path.join(folder, "dist/.assets-stamp");

/** What the page is made of, in one number. */
function fingerprint() {
  const hash = createHash("sha256");
  const inputs = [
    "index.html",
    "vite.config.ts",
    "scripts/build-assets.mjs",
    "../../package-lock.json",
    "../sdk/src/wire/studio-page.ts",
    "../sdk/src/wire/studio-routes.ts",
    "../sdk/src/wire/studio-series.ts",
    ...readdirSync(path.join(folder, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(tsx?|css|svg)$/.test(name) && !name.endsWith(".test.ts"))
      .map((name) => path.join("src", name)),
  ];
  for (const name of inputs.toSorted()) {
    hash
      .update(name)
      .update("\0")
      .update(readFileSync(path.join(folder, name)))
      .update("\0");
  }
  return hash.digest("hex");
}

/** True when the built page is that of these sources. */
export function areAssetsBuilt() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === fingerprint();
}

/** Builds the page unless it is there already. */
export async function buildAssets() {
  if (areAssetsBuilt()) return;
  const { build } = await import("vite");
  await build({ root: folder, configFile: path.join(folder, "vite.config.ts"), logLevel: "warn" });
  compress(path.join(folder, "dist/assets"));
  writeFileSync(stamp, fingerprint());
}

function compress(assets) {
  for (const entry of readdirSync(assets, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const bytes = readFileSync(file);
    const params = {
      [constants.BROTLI_PARAM_SIZE_HINT]: bytes.byteLength,
      [constants.BROTLI_PARAM_QUALITY]: 10,
    };
    writeFileSync(`${file}.br`, brotliCompressSync(bytes, { params }));
    writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildAssets();
