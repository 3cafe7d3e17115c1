import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkModel } from "../src/doctor/check-model.js";
import { modelFolder } from "./support/live-server.js";
import { writeModelHeaders, type Shapes } from "./support/model-headers.js";
import { realModels } from "./support/real-models.js";

let root: string;
beforeAll(() => void (root = mkdtempSync(path.join(tmpdir(), "tinker-ts-doctor-models-"))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const [qwen] = realModels;
const template = "{% for m in messages %}{{ m.content }}{% endfor %}<think>\n";

/** A folder with a tokenizer too; that of the tiny models of the tests. */
function folderOf(
  name: string,
  config: object,
  tensors: Shapes,
  options: Parameters<typeof writeModelHeaders>[3] = {},
): string {
  const folder = path.join(root, name);
  writeModelHeaders(folder, config, tensors, options);
  for (const file of ["tokenizer.json", "tokenizer_config.json"]) {
    cpSync(path.join(modelFolder, file), path.join(folder, file));
  }
  return folder;
}

async function findingsOf(folder: string) {
  const findings = await checkModel(folder);
  return new Map(findings.map((finding) => [finding.check, finding]));
}

it.each(realModels)(
  "finds every tensor of $name, and plans its memory",
  async ({ name, config, tensors, expected }) => {
    const files = name.includes("7B") || name.includes("8B") ? 4 : 1;
    const folder = folderOf(name.replace("/", "--"), config, tensors, { files, template });
    const found = await findingsOf(folder);
    expect(found.get("Model")).toMatchObject({ state: "ok" });
    expect(found.get("Model")?.finding).toMatch(expected);
    expect(found.get("Chat template")).toMatchObject({
      state: "ok",
      finding: "found; the model thinks before it answers",
    });
    expect(found.get("Memory, f32")?.finding).toMatch(/GB to train/);
  },
);

it("names tensors that are missing, unknown or of another shape", async () => {
  const { config, tensors } = qwen!;
  const changed: Record<string, readonly number[]> = { ...tensors };
  delete changed["model.language_model.layers.0.linear_attn.A_log"];
  changed["model.language_model.layers.1.linear_attn.conv1d.weight"] = [6144, 1, 3];
  changed["model.language_model.layers.2.linear_attn.extra"] = [4];
  const found = await findingsOf(folderOf("changed", config, changed));
  expect(found.get("Model")).toMatchObject({ state: "broken" });
  for (const problem of [
    /layers\.0\.linear_attn\.A_log" is missing/,
    /layers\.1\.linear_attn\.conv1d\.weight" has shape \[6144, 1, 3\] instead of \[6144, 1, 4\]/,
    /layers\.2\.linear_attn\.extra" is not expected/,
  ]) {
    expect(found.get("Model")?.finding).toMatch(problem);
  }
});

it("names an alternative to a model that does not load", async () => {
  const config = { architectures: ["Qwen3MoeForCausalLM"], model_type: "qwen3_moe" };
  const found = await findingsOf(folderOf("experts", config, {}));
  expect(found.get("Model")).toMatchObject({
    state: "broken",
    finding: expect.stringMatching(/mixtures of experts.*Qwen\/Qwen3-0\.6B to 32B/) as string,
  });
  expect([...found.keys()].filter((check) => check.startsWith("Memory"))).toEqual([]);
});

it("reports a missing template, and one that cannot be rendered", async () => {
  const { config, tensors } = qwen!;
  const none = await findingsOf(folderOf("none", config, tensors));
  expect(none.get("Chat template")?.finding).toMatch(/^none/);
  const bad = await findingsOf(folderOf("bad", config, tensors, { template: "{% if %}" }));
  expect(bad.get("Chat template")).toMatchObject({ state: "warning" });
});
