import { expect, it } from "vitest";
import { thinkingState } from "./thinking-state.js";

it.each([
  ["<|im_start|>assistant\n<think>\n", "inside"],
  ["<think>\n\n</think>\n\n", "behind"],
  ["<think>a</think>b", "none"],
  ["<think>a</think>b<think>c", "inside"],
  ["[INST]Hi[/INST][THINK]So", "inside"],
  ["assistant\n", "none"],
])("of %j is %s", (text, state) => {
  expect(thinkingState(text)).toBe(state);
});
