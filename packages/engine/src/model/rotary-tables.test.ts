import { describe, expect, it } from "vitest";
import { readModelConfig } from "@tinker-ts/hub/weights";
import { fixture } from "../../test/support/fixtures.js";
import { RotaryAngles, rotaryFrequencies } from "./rotary-tables.js";

const scaling = {
  kind: "llama3",
  factor: 8,
  lowFrequencyFactor: 1,
  highFrequencyFactor: 4,
  originalContextLength: 256,
} as const;

// Values of transformers 5 with PyTorch 2.13: `inv_freq`, and the cosines of position 4095.
const frequencies = [
  1, 0.269217312335968, 0.07247795909643173, 0.019512321799993515, 0.005253055598586798,
  0.001414213445968926, 0.0003807306638918817, 0.00010249933984596282, 2.7594589482760057e-5,
  7.428944627463352e-6,
];
const scaledFrequencies = [
  1, 0.269217312335968, 0.050345372408628464, 0.0024390402249991894, 0.0006566319498233497,
  0.00017677668074611574, 4.759133298648521e-5, 1.2812417480745353e-5, 3.449323685345007e-6,
  9.28618078432919e-7,
];
const cosines = [
  -0.06597599387168884, -0.9678961634635925, 0.08316837251186371, -0.20616933703422546,
  -0.8870477080345154, 0.8813986778259277, 0.011704014614224434, 0.9131970405578613,
  0.9936223030090332, 0.9995372891426086,
];

describe("rotary tables", () => {
  it("have the frequencies of PyTorch, to the last bit", () => {
    const plain = rotaryFrequencies({ theta: 5e5, scaling: null }, 20);
    expect(plain).toEqual(frequencies);
    expect(rotaryFrequencies({ theta: 5e5, scaling }, 20)).toEqual(scaledFrequencies);
  });

  it("have its angles, also where rounding is visible", async () => {
    const llama = await readModelConfig(fixture("llama/model"));
    const config = { ...llama, headDim: 20, rope: { theta: 5e5, scaling: null } };
    const cos = new RotaryAngles(config, 4096).feeds["rope.cos"] ?? [];
    for (const [index, cosine] of cosines.entries()) {
      expect(Math.abs((cos[4095 * 10 + index] ?? NaN) - cosine)).toBeLessThan(1e-6);
    }
  });
});
