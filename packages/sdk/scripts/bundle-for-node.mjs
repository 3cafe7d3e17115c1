// Gives a copy of the package bundled entry points for Node.
//
// Node pays for every file that it loads; from a few large ones the client is there four times as soon. Bundlers
// take the plain files, because they replace some of them for browsers. It is done to what is packed and never
// in the clone, where a bundle would be old after the next `tsc -b`.
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "vite";

/** Bundles the entry points of `folder`, a copy of this package, and names them in its manifest. */
export async function bundleForNode(folder) {
  const dist = path.join(folder, "dist");
  const out = path.join(dist, "node");
  const manifestFile = path.join(folder, "package.json");
  const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));
  const input = {};
  for (const [entry, { types, default: file } = {}] of Object.entries(manifest.exports)) {
    // The page's contract is for browsers alone.
    if (file === undefined || entry === "./wire/studio") continue;
    const name = path.posix.basename(entry === "." ? "index" : entry);
    input[name] = path.join(folder, file);
    manifest.exports[entry] = {
      types,
      browser: file,
      node: `./dist/node/${name}.js`,
      default: file,
    };
  }
  await build({
    configFile: false,
    root: folder,
    logLevel: "warn",
    plugins: [compiledFiles(dist, out, Object.keys(manifest.peerDependencies))],
    build: {
      ssr: true,
      outDir: out,
      target: "node20",
      minify: false,
      sourcemap: true,
      rolldownOptions: {
        input,
        external: /^[^./]/,
        preserveEntrySignatures: "strict",
        output: {
          entryFileNames: "[name].js",
          chunkFileNames: "[name]-[hash].js",
          // What the main entry point needs at once is one file; everything else shares its classes.
          codeSplitting: { groups: [{ name: "client", test: /\/dist\/index\.js$/ }] },
        },
      },
    },
  });
  writeFileSync(manifestFile, `${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * The compiled files, with the way back to the sources and to files that are found by their place, such as the
 * thread's. Packages that may not be there are left to Node by whoever bundles the client into a server.
 */
function compiledFiles(dist, out, optionalPackages) {
  return {
    name: "compiled-files",
    load(id) {
      if (!id.startsWith(dist)) return;
      const place = JSON.stringify(path.relative(out, id).replaceAll("\\", "/"));
      let code = readFileSync(id, "utf8");
      code = code.replaceAll("import.meta.url", `new URL(${place}, import.meta.url)`);
      for (const name of optionalPackages) {
        const hints = "/* turbopackIgnore: true */ /* webpackIgnore: true */";
        code = code.replaceAll(`import("${name}")`, `import(${hints} "${name}")`);
      }
      return { code, map: JSON.parse(readFileSync(`${id}.map`, "utf8")) };
    },
  };
}
