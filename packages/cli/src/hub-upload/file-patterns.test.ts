import { expect, it } from "vitest";
import { matchesAny } from "./file-patterns.js";

it.each([
  ["adapter_model.safetensors", "*.safetensors", true],
  ["adapter_model_safetensors", "*.safetensors", false],
  ["adapterXjson", "adapter.json", false],
  ["logs/run.txt", "logs/", true],
  ["logs", "logs/", false],
  ["a.b", "a?b", true],
  ["ab", "a?b", false],
  ["x+y(1).bin", "x+y(1).bin", true],
])("%s against %s: %s", (file, pattern, expected) => {
  expect(matchesAny(file, [pattern])).toBe(expected);
});
