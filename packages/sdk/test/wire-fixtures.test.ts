import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  decodeJson,
  decodeProto,
  encodeJson,
  encodeProto,
  parseJson,
  stringifyJson,
  WireError,
  type ProtoTypeName,
  type WireTypeName,
} from "../src/wire/index.js";
import { toReference } from "./support/reference-form.js";

interface JsonCase {
  readonly kind: "roundtrip" | "reject" | "defaults";
  readonly type: WireTypeName;
  readonly wire: Record<string, unknown>;
  readonly why?: string;
  readonly full?: unknown;
}

interface ProtoCase {
  readonly type: ProtoTypeName;
  readonly bytes: string;
  readonly value: unknown;
}

const jsonCases = load<JsonCase>("wire-json.json");
const protoCases = load<ProtoCase>("wire-proto.json");

describe("JSON as the official Python SDK writes it", () => {
  it.each(jsonCases.filter(({ kind }) => kind === "roundtrip"))(
    "round trips $type unchanged",
    ({ type, wire }) => {
      const again = encodeJson(type, decodeJson(type, wire));
      expect(again).toEqual(wire);
      expect(parseJson(stringifyJson(again))).toEqual(wire);
      expect(encodeJson(type, decodeJson(type, stringifyJson(wire)))).toEqual(wire);
    },
  );

  it.each(jsonCases.filter(({ kind }) => kind === "reject"))(
    "refuses $type: $why",
    ({ type, wire, why = "" }) => {
      const error = caught(() => decodeJson(type, wire));
      expect(error).toBeInstanceOf(WireError);
      const field =
        why === "unknown field" ? "surprise_field" : /(\S+) has|missing (\S+)/.exec(why);
      const name = typeof field === "string" ? field : (field?.[1] ?? field?.[2]);
      expect((error as WireError).path).toBe(name);
      expect((error as WireError).message).toContain(name);
    },
  );

  it.each(jsonCases.filter(({ kind }) => kind === "defaults"))(
    "fills the defaults of $type in",
    ({ type, wire, full }) => {
      expect(encodeJson(type, decodeJson(type, wire))).toEqual(full);
    },
  );
});

describe("protobuf as the official Python SDK writes it", () => {
  it.each(protoCases)("decodes $type to its value and back", ({ type, bytes, value }) => {
    const decoded = decodeProto(type, Buffer.from(bytes, "base64"));
    expect(toReference(decoded)).toEqual(value);
    expect(toReference(decodeProto(type, encodeProto(type, decoded)))).toEqual(value);
  });
});

function load<T>(name: string): T[] {
  return JSON.parse(readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8")) as T[];
}

function caught(action: () => unknown): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  return undefined;
}
