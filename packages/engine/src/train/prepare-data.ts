import { EngineError } from "../errors.js";
import { checkTokenRange, checkTokens } from "../model/tokens.js";
import type { ModelConfig } from "../model/model-config.js";
import type { Datum, LossInput, PreparedDatum } from "./datum.js";
import { losses, type Loss, type LossName } from "./losses.js";

/** Settings of a loss by name. */
export type LossSettings = Readonly<Record<string, number>>;

/** Checks everything about a call before any work is done, and converts it to plain arrays. */
export function prepareData(
  config: ModelConfig,
  data: readonly Datum[],
  lossName: string,
  settings: LossSettings = {},
): { readonly loss: LossName; readonly data: readonly PreparedDatum[] } {
  if (!isLossName(lossName)) {
    throw new EngineError(
      "unknown_loss",
      `lossFn "${lossName}" does not exist; use one of ${Object.keys(losses).join(", ")}.`,
    );
  }
  if (data.length === 0) {
    throw new EngineError("empty_data", "data is empty; give at least one datum.");
  }
  const loss = losses[lossName];
  const complete = completeSettings(lossName, loss, settings);
  return {
    loss: lossName,
    data: data.map((datum, index) => prepareDatum(config, datum, index, lossName, loss, complete)),
  };
}

function isLossName(name: string): name is LossName {
  return Object.hasOwn(losses, name);
}

function completeSettings(name: LossName, loss: Loss, given: LossSettings): LossSettings {
  const known = Object.keys(loss.settings);
  for (const [key, value] of Object.entries(given)) {
    if (!known.includes(key)) {
      const way = known.length === 0 ? "it takes none" : `it knows ${known.join(" and ")}`;
      throw new EngineError(
        "unknown_loss_config",
        `lossFnConfig.${key}: ${name} has no such key; ${way}.`,
      );
    }
    if (!Number.isFinite(value)) {
      throw new EngineError("invalid_loss_config", `lossFnConfig.${key} must be a finite number.`);
    }
  }
  const complete = { ...loss.settings, ...given };
  const { clip_low_threshold: low, clip_high_threshold: high } = complete;
  if (low !== undefined && high !== undefined && low > high) {
    throw new EngineError(
      "invalid_loss_config",
      `lossFnConfig: clip_low_threshold (${low}) is above clip_high_threshold (${high}).`,
    );
  }
  return complete;
}

function prepareDatum(
  config: ModelConfig,
  datum: Datum,
  index: number,
  lossName: LossName,
  loss: Loss,
  settings: LossSettings,
): PreparedDatum {
  const where = `data[${index}]`;
  const tokens = checkTokens(config, datum.tokens, `${where}.tokens`);
  const perPosition = Object.keys(loss.settings);
  checkNames(where, datum, lossName, loss, perPosition);
  const targetInput = requiredInput(where, datum, "target_tokens", lossName);
  const targetShape = checkTargetShape(where, targetInput, tokens.length, loss, lossName);
  const targets = checkTargets(config, targetInput, `${where}.inputs.target_tokens`);
  const read = (name: string): Float32Array =>
    checkFloats(
      requiredInput(where, datum, name, lossName),
      targetShape,
      `${where}.inputs.${name}`,
    );
  const readOr = (name: string, fallback: number | undefined): Float32Array =>
    fallback === undefined || name in datum.inputs
      ? read(name)
      : new Float32Array(targets.length).fill(fallback);
  const inputs = recordOf(loss.inputs, (name) => readOr(name, loss.inputDefaults?.[name]));
  const perTarget = recordOf(perPosition, (name) => readOr(name, settings[name] ?? 0));
  const targetsPerRow = targetShape[1] ?? 1;
  const gate = loss.gate === undefined ? undefined : inputs[loss.gate];
  return {
    tokens,
    targetsPerRow,
    targets,
    inputs,
    settings: perTarget,
    activeRows: activeRows(tokens.length, targetsPerRow, gate),
    targetShape,
  };
}

function checkNames(
  where: string,
  datum: Datum,
  lossName: LossName,
  loss: Loss,
  perPosition: readonly string[],
): void {
  const known = ["target_tokens", ...loss.inputs, ...perPosition];
  for (const name of Object.keys(datum.inputs)) {
    if (!known.includes(name)) {
      throw new EngineError(
        "unknown_loss_input",
        `${where}.inputs.${name}: ${lossName} reads no such input; it reads ${known.join(", ")}.`,
      );
    }
  }
}

function requiredInput(where: string, datum: Datum, name: string, lossName: LossName): LossInput {
  const input = datum.inputs[name];
  if (input === undefined) {
    throw new EngineError(
      "missing_loss_input",
      `${where}.inputs.${name} is missing; ${lossName} needs it.`,
    );
  }
  return input;
}

function checkTargetShape(
  where: string,
  input: LossInput,
  length: number,
  loss: Loss,
  lossName: LossName,
): readonly number[] {
  const { shape } = input;
  const allowed = loss.manyTargets ? [1, 2] : [1];
  const [rows, perRow = 1] = shape;
  if (!allowed.includes(shape.length) || rows !== length || perRow < 1) {
    const expected = loss.manyTargets ? `[${length}] or [${length}, k]` : `[${length}]`;
    throw new EngineError(
      "wrong_shape",
      `${where}.inputs.target_tokens has shape [${shape.join(", ")}]; ${lossName} on ${length} ` +
        `tokens needs ${expected}.`,
    );
  }
  return shape;
}

function checkTargets(config: ModelConfig, input: LossInput, where: string): Int32Array {
  checkElementCount(input, where);
  return checkTokenRange(config, input.data, where);
}

function checkFloats(input: LossInput, shape: readonly number[], where: string): Float32Array {
  const same = input.shape.length === shape.length && input.shape.every((n, i) => n === shape[i]);
  if (!same) {
    throw new EngineError(
      "wrong_shape",
      `${where} has shape [${input.shape.join(", ")}]; it must be that of target_tokens, ` +
        `[${shape.join(", ")}].`,
    );
  }
  checkElementCount(input, where);
  const values = Float32Array.from(input.data, Number);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) {
    throw new EngineError(
      "not_finite",
      `${where}[${bad}] is ${values[bad]}; it must be a finite number.`,
    );
  }
  return values;
}

function checkElementCount(input: LossInput, where: string): void {
  const count = input.shape.reduce((product, dim) => product * dim, 1);
  if (input.data.length !== count) {
    throw new EngineError(
      "wrong_shape",
      `${where} has ${input.data.length} elements, but its shape [${input.shape.join(", ")}] ` +
        `means ${count}.`,
    );
  }
}

function activeRows(length: number, perRow: number, gate: Float32Array | undefined): Uint8Array {
  const active = new Uint8Array(length);
  if (gate === undefined) return active.fill(1);
  for (const [index, value] of gate.entries()) {
    if (value !== 0) active[Math.floor(index / perRow)] = 1;
  }
  return active;
}

/** A record with one value per key. */
function recordOf<T>(keys: Iterable<string>, make: (key: string) => T): Record<string, T> {
  const record: Record<string, T> = {};
  for (const key of keys) record[key] = make(key);
  return record;
}
