import { access, constants, readdir, stat, statfs } from "node:fs/promises";
import path from "node:path";
import { dataDirectory } from "../connect/data-directory.js";
import { formatSize } from "../output/formats.js";
import { broken, ok, type Finding } from "./finding.js";

const littleBytes = 1024 ** 3;
const tooLittleBytes = 100 * 1024 ** 2;

type Environment = Readonly<Record<string, string | undefined>>;

/** Files in the data directory that a server could not account for. */
export async function checkLostAndFound(env: Environment): Promise<Finding[]> {
  const folder = path.join(dataDirectory(env), "lost-and-found");
  const list = (kind: string): Promise<string[]> =>
    readdir(path.join(folder, kind)).catch(() => []);
  const weights = (
    await Promise.all(
      ["checkpoints", "snapshots"].map(async (kind) =>
        (await list(kind)).map((name) => path.join(folder, kind, name)),
      ),
    )
  ).flat();
  const others = (await list("blobs")).length;
  const [first] = weights;
  if (first === undefined && others === 0) return [];
  return [
    {
      check: "Lost and found",
      state: "warning",
      finding: `${weights.length} saved states and ${others} other files in ${folder}`,
      remedy:
        first === undefined
          ? "Payloads and results of requests that the server no longer needs; delete them."
          : `Restore states you need with 'tinker-ts checkpoint import ${first}'; delete the rest.`,
    },
  ];
}

/** Whether the data directory is writable and has free space. */
export async function checkDisk(env: Environment): Promise<Finding> {
  const folder = dataDirectory(env);
  try {
    const existing = await nearestExisting(folder);
    if (!(await stat(existing)).isDirectory()) throw new Error(`${existing} is not a folder`);
    await access(existing, constants.W_OK);
    const { bavail, bsize } = await statfs(existing);
    const freeBytes = bavail * bsize;
    const finding = `${formatSize(freeBytes)} free in ${folder}`;
    const remedy = "Free some space, or set TINKER_TS_DATA_DIR to another disk.";
    if (freeBytes < tooLittleBytes) return broken("Disk", finding, remedy);
    if (freeBytes < littleBytes) return { check: "Disk", state: "warning", finding, remedy };
    return ok("Disk", finding);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return broken("Disk", reason, "Set TINKER_TS_DATA_DIR to a folder that you may write to.");
  }
}

async function nearestExisting(folder: string): Promise<string> {
  const exists = await access(folder).then(
    () => true,
    () => false,
  );
  const parent = path.dirname(folder);
  return exists || parent === folder ? folder : nearestExisting(parent);
}
