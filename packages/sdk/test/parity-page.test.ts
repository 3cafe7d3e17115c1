import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ownTypes, python, renderParityPage, withoutClass } from "../scripts/parity-page.js";
import { routes, wireTypes } from "../src/wire/index.js";

it("docs/parity.md says what the schemas say", () => {
  const page = readFileSync(new URL("../../../docs/parity.md", import.meta.url), "utf8");
  expect(page, "run `npm run generate:parity -w packages/sdk`").toBe(renderParityPage());
});

describe(`the names of the Python SDK ${python.version}`, () => {
  /** Classes that are no messages of their own here. */
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

  it("are all that this package has, apart from what is marked", () => {
    const own = Object.keys(wireTypes).filter((name) => {
      const isMessage = fieldsOf(name).length > 0;
      return isMessage && !(name in python.types) && !withoutClass.has(name);
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
