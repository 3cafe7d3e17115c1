import { ModelInput } from "tinker-ts";
import { describe, expect, it } from "vitest";
import { batchToData } from "./policy-datum.js";
import { transcripts } from "./records.js";
import type { TrajectoryGroup } from "./types.js";

const picture = {
  type: "image_asset_pointer",
  format: "png",
  location: "kite.png",
  expectedTokens: 3,
} as const;

const groupOf = (observation: ModelInput): TrajectoryGroup => ({
  trajectories: [
    {
      stopReason: "completed",
      transitions: [
        {
          observation,
          action: {
            tokens: Int32Array.of(20, 21),
            logprobs: Float32Array.of(-0.5, -0.25),
            stopReason: "stop",
          },
          reward: 1,
          metrics: {},
          logs: {},
          masked: false,
        },
      ],
    },
  ],
  finalRewards: [0.5],
  metrics: [{}],
  tags: [],
});

const text = (...tokens: number[]) => ({ type: "encoded_text", tokens }) as const;
const spell = (tokens: Iterable<number>): string => [...tokens].map((id) => `<${id}>`).join("");

describe("a transcript", () => {
  it.each([
    ["text", new ModelInput({ chunks: [text(10, 11)] }), [10, 11, 20, 21]],
    [
      "text around a picture",
      new ModelInput({ chunks: [text(10), picture, text(11)] }),
      [10, null, null, null, 11, 20, 21],
    ],
  ])("of %s has one entry per position in every list", (_, observation, tokens) => {
    const groups = [groupOf(observation)];
    const [line] = transcripts(
      batchToData(groups, [[2]]),
      { split: "train", iteration: 4 },
      { groups, decode: spell },
    );
    const before = tokens.length - 2;
    const zeros = Array.from({ length: before }, () => 0);
    expect(line).toMatchObject({
      iteration: 4,
      total_reward: 1.5,
      tokens,
      logprobs: [...zeros, -0.5, -0.25],
      advantages: [...zeros, 2, 2],
      mask: [...zeros, 1, 1],
      texts: tokens.map((id) => (id === null ? "" : `<${id}>`)),
      text: spell(tokens.filter((id) => id !== null)),
    });
  });
});
