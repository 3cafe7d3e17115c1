import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  isNewer,
  ownTypes,
  python,
  renderParityPage,
  withoutClass,
} from "../scripts/parity-page.js";
import { routes, wireTypes } from "../src/wire/index.js";

it("docs/parity.md matches the schemas", () => {
  const page = readFileSync(new URL("../../../docs/parity.md", import.meta.url), "utf8");
  expect(page, "run `npm run generate:parity -w packages/sdk`").toBe(renderParityPage());
});

describe(`the names of the Python SDK ${python.version}`, () => {
  /** Classes that are not separate messages here. */
  const otherwise: Readonly<Record<string, string>> = {
    ParsedCheckpointTinkerPath: "CheckpointPath",
    TopkPromptLogprobs: "a list of lists in SampleResponse",
  };

  const fieldsOf = (name: string): string[] =>
    [
      ...JSON.stringify(wireTypes[name as keyof typeof wireTypes].node, (_, value: unknown) =>
        value instanceof Map ? Object.fromEntries(value as Map<string, unknown>) : value,
      ).matchAll(/"wireName":"(\w+)"/g),
    ].map(([, field]) => field!);

  it("of types are all known", () => {
    const missing = Object.keys(python.types).filter((name) => !(name in wireTypes));
    expect(missing.filter((name) => !(name in otherwise))).toEqual([]);
    expect(Object.keys(otherwise).filter((name) => !missing.includes(name))).toEqual([]);
  });

  it("of fields are all known", () => {
    const missing = Object.entries(python.types)
      .filter(([name]) => name in wireTypes)
      .flatMap(([name, fields]) => {
        const known = fieldsOf(name);
        return fields.filter((field) => !known.includes(field)).map((field) => `${name}.${field}`);
      });
    expect(missing).toEqual([]);
  });

  it("of routes are all known", () => {
    const known = Object.values(routes).map((route) => route.path.replaceAll(/\{\w+\}/g, "{}"));
    expect(python.routes.filter((route) => !known.includes(route))).toEqual([]);
  });

  it("cover everything in this package, apart from marked additions", () => {
    const own = Object.keys(wireTypes).filter((name) => {
      const isMessage = fieldsOf(name).length > 0;
      const { node } = wireTypes[name as keyof typeof wireTypes];
      const isLater = node.kind === "object" && isNewer(node.since);
      return isMessage && !(name in python.types) && !withoutClass.has(name) && !isLater;
    });
    const unions = new Set([
      "BillingEventInfo",
      "FutureRetrieveResponse",
      "ModelInputChunk",
      "TelemetryEvent",
      "LossFnInputs",
      "LossFnOutput",
    ]);
    expect(own.filter((name) => !ownTypes.has(name) && !unions.has(name))).toEqual([]);
  });
});

it("names are read from a checkout: fields with those of base classes, routes with their parameters", () => {
  const checkout = mkdtempSync(path.join(tmpdir(), "tinker-ts-python-"));
  const files = {
    "pyproject.toml": '[project]\nversion = "9.8.7"\n',
    "src/tinker/types/adam.py": `
class Base(StrictBase):
    """fields are not in here: no_field: int"""
    beta1: float = 0.9

class AdamParams(Base):
    model_config = ConfigDict()
    grad_np: list[float]
    # hidden: int
    eps: float

    def method(self):
        local: int = 1

class _Internal(Base):
    x: int
`,
    "src/tinker/types/adam_test.py": "class InTests(Base):\n    y: int\n",
    "src/tinker/resources/runs.py":
      'get(f"/api/v1/training_runs/{run_id}/checkpoints")  # "/api/v1/commented"\npost("/api/v1/asample")\n',
    "src/tinker/cli/main.py": 'get("/api/v1/of_the_cli")\n',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(checkout, name)), { recursive: true });
    writeFileSync(path.join(checkout, name), text);
  }
  const target = path.join(checkout, "names.json");
  const script = fileURLToPath(new URL("../scripts/read-python-sdk.mjs", import.meta.url));
  try {
    execFileSync(process.execPath, [script, checkout, target], { stdio: "ignore" });
    expect(JSON.parse(readFileSync(target, "utf8"))).toEqual({
      version: "9.8.7",
      commit: "unknown",
      routes: ["/api/v1/asample", "/api/v1/training_runs/{}/checkpoints"],
      types: { AdamParams: ["beta1", "grad", "eps"], Base: ["beta1"] },
    });
  } finally {
    rmSync(checkout, { recursive: true, force: true });
  }
});
