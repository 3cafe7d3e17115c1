import { afterAll, expect, it, vi } from "vitest";
import { ProgramCache } from "../execution/program.js";
import type { ParameterLayout } from "../model/parameter-layout.js";
import { completeAdamOptions } from "./adam.js";
import { adamUpdate } from "./graphs/adam.js";
import { ParameterState } from "./parameter-state.js";

const programs = new ProgramCache({ threads: 1 });
afterAll(() => programs.release());

// More than the update takes at once, so that a step can fail after a part of it.
const length = (1 << 18) + 3;
const layout: ParameterLayout = {
  length,
  feeds: [],
  tensors: [{ name: "weights", offset: 0, shape: [length] }],
};
const options = completeAdamOptions({ learningRate: 0.1 });

/** Adds the gradient of a pass; passes with the same number have the same gradient. */
function pass(state: ParameterState, number: number): void {
  const gradient = state.borrowGradient();
  for (let i = 0; i < length; i++) gradient[i] = Math.sin(i * number);
  state.addGradient(gradient);
}

it("parameters broken by a step refuse every use until an import, then train to the same bits", async () => {
  const state = new ParameterState(layout, new Float32Array(length).fill(1));
  pass(state, 1);
  await state.step(programs, options);
  const saved = state.export(true);
  pass(state, 2);

  const program = await programs.get("adam", adamUpdate);
  const run = program.run.bind(program);
  const spy = vi.spyOn(program, "run");
  spy.mockImplementationOnce(run).mockRejectedValueOnce(new Error("out of memory"));
  const broken = { code: "adapter_broken" };
  await expect(state.step(programs, options)).rejects.toMatchObject(broken);
  spy.mockRestore();

  await expect(state.step(programs, options)).rejects.toMatchObject(broken);
  for (const use of [() => state.values, () => state.freeze(), () => state.export(false)]) {
    expect(use).toThrow(expect.objectContaining(broken));
  }

  const whole = new ParameterState(layout, new Float32Array(length));
  for (const each of [state, whole]) {
    each.import(saved, true);
    pass(each, 2);
    await each.step(programs, options);
  }
  expect(Buffer.from(state.values.buffer).equals(Buffer.from(whole.values.buffer))).toBe(true);
});
