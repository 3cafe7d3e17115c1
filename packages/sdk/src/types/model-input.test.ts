import { describe, expect, it } from "vitest";
import { ModelInput } from "./model-input.js";
import { readContainerShape } from "./model-input.js";

const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));

describe("ModelInput", () => {
  it("is made from token ids and turned back", () => {
    const input = ModelInput.fromInts([1, 2, 3]);
    expect(input.chunks).toEqual([{ type: "encoded_text", tokens: Int32Array.of(1, 2, 3) }]);
    expect(input.toInts()).toEqual(Int32Array.of(1, 2, 3));
    expect(input.length).toBe(3);
    expect(ModelInput.empty().length).toBe(0);
    expect(ModelInput.empty().toInts()).toEqual(new Int32Array());
  });

  it("appends without changing the original", () => {
    const input = ModelInput.fromInts([1]);
    expect(input.appendInt(2).toInts()).toEqual(Int32Array.of(1, 2));
    expect(input.append({ tokens: [3, 4] }).toInts()).toEqual(Int32Array.of(1, 3, 4));
    expect(input.append({ tokens: [3] }).chunks).toHaveLength(2);
    expect(input.length).toBe(1);
    expect(ModelInput.empty().appendInt(7).toInts()).toEqual(Int32Array.of(7));
  });

  it("counts pictures by expected tokens, audio by frames", () => {
    const picture = { data: new Uint8Array(3), format: "png", expectedTokens: 5 } as const;
    const input = ModelInput.fromInts([1])
      .append(picture)
      .append({ dmel: bytes("0402820150") });
    expect(input.length).toBe(1 + 5 + 130);
    expect(() => input.toInts()).toThrow("chunks[1]");
  });

  it("requires expectedTokens when a length is needed", () => {
    const input = ModelInput.empty().append({ location: "file.png", format: "png" });
    expect(() => input.length).toThrow("chunks[0].expectedTokens");
  });

  it("refuses token ids that are not 32-bit integers", () => {
    expect(() => ModelInput.fromInts([1.5])).toThrow("an integer");
    expect(() => ModelInput.fromInts([2 ** 31])).toThrow("32 bits");
    expect(() => ModelInput.empty().appendInt(2 ** 40)).toThrow("32 bits");
  });
});

describe("readContainerShape", () => {
  it.each([
    ["0402820150", [130, 80]],
    ["fe04022550", [37, 80]],
    ["0400", []],
  ])("reads %s", (hex, shape) => {
    expect(readContainerShape(bytes(hex))).toEqual(shape);
  });

  it.each(["", "04", "0402", "040280", "fe", "08020150", `04${"80".repeat(10)}`])(
    "refuses %j",
    (hex) => {
      expect(() => readContainerShape(bytes(hex))).toThrow("dmel");
    },
  );
});
