import { execFile, spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installProject } from "./support/installed-project.js";
import { root } from "./support/source-graph.js";

/*
 * Plays the tutorial as a newcomer does, from packed tarballs: files are saved under the names that the pages give them,
 * commands are run line by line, and the studio is open all the time.
 */

interface Block {
  readonly language: string;
  readonly text: string;
  /** The file that the page has the reader save it as. */
  readonly file: string | undefined;
}

const folder = path.join(root, "docs/tutorial");
const pages = readdirSync(folder).filter((name) => /^\d/.test(name));

function blocksOf(page: string): Block[] {
  const text = readFileSync(path.join(folder, page), "utf8");
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map((match) => {
    const [, language = "", body = ""] = match;
    const before = text.slice(0, match.index).split("\n```").at(-1) ?? "";
    const file = [...before.matchAll(/[Ss]ave[^`]*`([\w.-]+\.\w+)`/g)].at(-1)?.[1];
    return { language, text: body, file };
  });
}

let project = "";
let env: NodeJS.ProcessEnv = {};
const started: ChildProcess[] = [];

beforeAll(() => {
  project = installProject(["tsx", "openai"]);
  env = {
    ...process.env,
    TINKER_TS_DATA_DIR: path.join(project, "home"),
    TINKER_TS_IN_PROCESS: "",
  };
}, 300_000);

afterAll(() => {
  // The group: npx starts the program as a process of its own, which would go on and start the local server again.
  for (const { pid } of started) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  try {
    const note = readFileSync(path.join(project, "home/holder.json"), "utf8");
    process.kill((JSON.parse(note) as { pid: number }).pid, "SIGKILL");
  } catch {
    // No server is left.
  }
  rmSync(project, { recursive: true, force: true, maxRetries: 50 });
}, 60_000);

async function run(line: string): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)("sh", ["-c", line], {
    cwd: project,
    env,
    timeout: 240_000,
  });
  return stdout + stderr;
}

/** Starts what stays open; resolves with the first line that it prints. */
async function open(line: string): Promise<string> {
  const child = spawn("sh", ["-c", `exec ${line}`], {
    cwd: project,
    env,
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  started.push(child);
  for await (const first of createInterface(child.stdout)) return first;
  throw new Error(`${line} ended without a line`);
}

/** What commands of a page must show. */
const expected: Readonly<Record<string, RegExp>> = {
  "npx tsx first-model.ts": /after: Who keeps the lighthouse\? Mara keeps the lighthouse\./,
  "npx tinker-ts train sft data.jsonl --model tinker-ts/sprout":
    /now: +Mara keeps the lighthouse\. ✓[^]*Checkpoint: tinker:/,
  'echo "Who bakes the bread?" | npx tinker-ts chat --model runs/data --temperature 0 --quiet':
    /Old Tom bakes the bread\./,
  "npx tsx train.ts": /tinker:\/\/.*\/sampler_weights\/final/,
  "npx tinker-ts eval questions.jsonl --model runs/data --grader includes": /Score +[1-9]/,
  "npx tinker-ts train rl reward.mjs --model tinker-ts/sprout":
    /mean reward: .* before, [01]\.[5-9]\d? now|mean reward: .* before, 1\.00 now/,
  "npx tinker-ts doctor --model merged": /Model +ok/,
};

describe("the tutorial", () => {
  it("has its studio open from now on", async () => {
    expect(await open("npx tinker-ts studio --no-open")).toMatch(/^http:.*\/studio#code=/);
  }, 60_000);

  it.each(pages.slice(0, 4))("%s works line by line", play, 600_000);

  it("takes the model along, and asks it through a server", async () => {
    const page = pages[4] ?? "";
    const blocks = blocksOf(page);
    for (const { language, text } of blocks) {
      if (language !== "sh") continue;
      for (const line of text.trim().split("\n")) {
        if (line.startsWith("npx tinker-ts serve")) continue;
        const output = await run(line);
        if (expected[line]) expect(output).toMatch(expected[line]);
      }
    }
    const rows = readFileSync(path.join(project, "runs/data/checkpoints.jsonl"), "utf8").trim();
    const { sampler_path: checkpoint } = JSON.parse(rows.split("\n").at(-1) ?? "") as {
      readonly sampler_path: string;
    };
    const listening = await open(`npx tinker-ts serve --port 0 --alias guide=${checkpoint}`);
    const url = listening.replace("listening on ", "");
    const client = blocks.find(({ language }) => language === "ts")?.text ?? "";
    writeFileSync(path.join(project, "ask.ts"), client.replace("http://127.0.0.1:8080", url));
    expect(await run("npx tsx ask.ts")).toContain("Old Tom bakes the bread.");
  }, 240_000);

  async function play(page: string): Promise<void> {
    for (const { language, text, file } of blocksOf(page)) {
      if (language !== "sh") {
        if (file !== undefined) writeFileSync(path.join(project, file), text);
        continue;
      }
      for (const line of text.trim().split("\n")) {
        // The packages are installed, and the studio is open.
        if (/^(npm|mkdir|npx tinker-ts studio)/.test(line)) continue;
        const output = await run(line);
        if (expected[line]) expect(output, line).toMatch(expected[line]);
      }
    }
  }
});
