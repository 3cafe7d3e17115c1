// Checks that a release can be published: manifests that agree, a changelog, and packages that npm accepts.
//   npm run release:check [-- v1.2.3]
// With a tag, the version must be that of the tag. Nothing is uploaded.
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { root } from "./ready.mjs";

const [tag] = process.argv.slice(2);
const packages = publishedPackages();
const problems = [...manifestProblems(packages), ...releaseProblems(packages[0].manifest, tag)];
if (problems.length > 0) {
  console.error(`This cannot be released:\n${problems.map((line) => `  ${line}`).join("\n")}`);
  process.exit(1);
}
execFileSync(process.execPath, [path.join(root, "scripts/check-packages.mjs")], {
  stdio: "inherit",
});
console.log(`${packages.length} packages of ${packages[0].manifest.version} can be published.`);

function publishedPackages() {
  return readdirSync(path.join(root, "packages"))
    .map((folder) => ({
      folder: `packages/${folder}`,
      manifest: JSON.parse(
        readFileSync(path.join(root, "packages", folder, "package.json"), "utf8"),
      ),
    }))
    .filter(({ manifest }) => !manifest.private);
}

/** What npm or its provenance would refuse, and versions that do not belong together. */
function manifestProblems(all) {
  const [{ manifest: first }] = all;
  const own = new Set(all.map(({ manifest }) => manifest.name));
  return all.flatMap(({ folder, manifest }) => {
    const { name, version, license, repository, dependencies, peerDependencies } = manifest;
    const siblings = Object.entries({ ...dependencies, ...peerDependencies })
      .filter(([dependency]) => own.has(dependency))
      .filter(([, range]) => range.replace(/^[\^~]/, "") !== first.version);
    return [
      ...(version === first.version
        ? []
        : [`${name} is ${version}, but ${first.name} is ${first.version}`]),
      ...siblings.map(
        ([dependency, range]) => `${name} depends on ${dependency} ${range}, not ${first.version}`,
      ),
      ...(license === first.license ? [] : [`${name} has the license ${license}`]),
      ...(repository?.url === first.repository.url && repository.directory === folder
        ? []
        : [`${name}: "repository" must be ${first.repository.url} with the directory ${folder}`]),
    ];
  });
}

function releaseProblems({ version }, wanted) {
  const changelog = readFileSync(path.join(root, "CHANGELOG.md"), "utf8");
  const [, newest] = /^## (\S+)/m.exec(changelog) ?? [];
  return [
    ...(newest === version ? [] : [`CHANGELOG.md begins with ${newest}, not ${version}`]),
    ...(wanted === undefined || wanted === `v${version}`
      ? []
      : [`the tag is ${wanted}, but the packages are ${version}`]),
  ];
}
