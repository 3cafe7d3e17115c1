import type { SafetensorsEntry } from "@tinker-ts/hub/weights";
import type { AdapterFolder, LoraPair } from "./adapter.js";
import { expertProjection, renameModule, type Family } from "./families.js";
import { WeightsError } from "./weights-error.js";

/** Where in a tensor a change goes: rows of a matrix, or an expert's part of a larger tensor. */
export interface Region {
  /** The expert, for tensors with one more dimension than a matrix. */
  readonly expert?: number | undefined;
  /** Whether the first axis of the matrix is the input's. */
  readonly isTransposed: boolean;
  /** The first output, and the distance to the next. */
  readonly offset: number;
  readonly stride: number;
}

/** A change of a tensor of the base model by one pair of factors. */
export interface Change {
  readonly pair: LoraPair;
  /** Which expert's factors, for factors that have one more dimension; a single one serves all experts. */
  readonly expert?: number | undefined;
  readonly region: Region;
}

/** Changes by the name of the tensor they go to. */
export type MergePlan = ReadonlyMap<string, readonly Change[]>;

const whole: Region = { isTransposed: false, offset: 0, stride: 1 };

/**
 * Finds the place of every factor before anything is touched. A factor without a place, a shape that does
 * not fit, or two factors for one place are errors.
 */
export function planMerge(
  adapter: AdapterFolder,
  base: ReadonlyMap<string, SafetensorsEntry>,
  family: Family,
): MergePlan {
  const plan = new Map<string, Change[]>();
  const add = (name: string, change: Change): void => {
    plan.set(name, [...(plan.get(name) ?? []), change]);
  };
  for (const { target, ...change } of joinRows(adapter.pairs, family).flatMap((placed) =>
    placeOf(placed, base, family),
  )) {
    add(target, change);
  }
  for (const [name, changes] of plan) checkChanges(name, changes, base.get(name));
  return plan;
}

/** A pair with its module in the base model and the first of its rows there. */
interface PlacedPair {
  readonly pair: LoraPair;
  readonly module: string;
  readonly row: number;
}

/** Parts of modules that the base model has as one get their rows, in the order of the family. */
function joinRows(pairs: readonly LoraPair[], family: Family): PlacedPair[] {
  const byPath = new Map(pairs.map((pair) => [pair.path, pair]));
  return pairs.map((pair) => {
    const module = renameModule(pair.path, family);
    const leaf = leafOf(pair.path);
    const joined = Object.entries(family.joined).find(([, parts]) => parts.includes(leaf));
    if (!joined || isExpert(pair.path)) return { pair, module, row: 0 };
    const [name, parts] = joined;
    const before = parts.slice(0, parts.indexOf(leaf));
    const row = before.reduce((sum, part) => {
      const other = byPath.get(withLeaf(pair.path, part));
      if (!other) throw new WeightsError(`${pair.path}: ${part}, with the first rows, is missing`);
      return sum + rowsOf(other);
    }, 0);
    return { pair, module: withLeaf(module, name), row };
  });
}

function placeOf(
  { pair, module, row }: PlacedPair,
  base: ReadonlyMap<string, SafetensorsEntry>,
  family: Family,
): (Change & { readonly target: string })[] {
  if (!isExpert(module)) {
    const target = `${module}.weight`;
    if (module === family.head && !base.has(target)) {
      return [{ target, pair, region: whole }];
    }
    if (!base.has(target)) throw new WeightsError(`${pair.path}: the base model has no ${target}`);
    return [{ target, pair, region: { ...whole, offset: row } }];
  }
  return placeExperts(pair, module, base, family);
}

function placeExperts(
  pair: LoraPair,
  module: string,
  base: ReadonlyMap<string, SafetensorsEntry>,
  family: Family,
): (Change & { readonly target: string })[] {
  const [, experts, only, leaf] = /^(.*\.experts)(?:\.(\d+))?\.(\w+)$/.exec(module)!;
  const projection = expertProjection(family, leaf!);
  const isGateOrUp = projection !== "down_proj";
  const fusedName = `${experts}.${isGateOrUp ? "gate_up_proj" : "down_proj"}`;
  const fused = base.get(fusedName) ?? base.get(`${fusedName}.weight`);
  const count = only !== undefined ? 1 : Math.max(pair.a.shape[0]!, pair.b.shape[0]!);
  if (only === undefined) checkBroadcast(pair);
  return Array.from({ length: count }, (_, index) => {
    const expert = only === undefined ? index : Number(only);
    const factor = only === undefined ? { expert: index } : {};
    if (!fused) {
      const target = `${experts}.${expert}.${projection}.weight`;
      if (!base.has(target))
        throw new WeightsError(`${pair.path}: the base model has no ${target}`);
      return { target, pair, ...factor, region: whole };
    }
    const region = fusedRegion(pair, fused, { expert, projection, family, isGateOrUp });
    return { target: fused.name, pair, ...factor, region };
  });
}

/** A gate or up projection is half of its tensor: the first or second half of the outputs, or every other one. */
function fusedRegion(
  pair: LoraPair,
  fused: SafetensorsEntry,
  place: { expert: number; projection: string; family: Family; isGateOrUp: boolean },
): Region {
  const { expert, projection, family, isGateOrUp } = place;
  const [outputs, inputs] = [rowsOf(pair), pair.a.shape.at(-1)!];
  const total = isGateOrUp ? 2 * outputs : outputs;
  const isTransposed = orientation(fused, { inputs, total }, family);
  if (!isGateOrUp) return { expert, isTransposed, offset: 0, stride: 1 };
  const isUp = projection === "up_proj";
  return family.fused?.interleaved
    ? { expert, isTransposed, offset: isUp ? 1 : 0, stride: 2 }
    : { expert, isTransposed, offset: isUp ? outputs : 0, stride: 1 };
}

/** Whether inputs are the first axis: by the shape, and for square ones by the family. */
function orientation(
  { name, shape }: SafetensorsEntry,
  { inputs, total }: { readonly inputs: number; readonly total: number },
  family: Family,
): boolean {
  const [first, second] = [shape.at(-2), shape.at(-1)];
  const fitsTransposed = first === inputs && second === total;
  const fitsStraight = first === total && second === inputs;
  if (fitsTransposed && fitsStraight) {
    if (family.fused) return family.fused.inputsFirst;
    throw new WeightsError(
      `${name}: is square, and which axis is the input is not known for this model`,
    );
  }
  if (fitsTransposed || fitsStraight) return fitsTransposed;
  throw new WeightsError(
    `${name}: has the shape ${shape.join(" x ")}, which does not fit the adapter`,
  );
}

function checkBroadcast({ path, a, b }: LoraPair): void {
  const [left, right] = [a.shape[0]!, b.shape[0]!];
  if (a.shape.length !== 3 || b.shape.length !== 3 || (left === 1 && right === 1)) {
    throw new WeightsError(`${path}: factors of experts must have a dimension for them`);
  }
  if (left !== right && left !== 1 && right !== 1) {
    throw new WeightsError(`${path}: ${left} and ${right} experts do not go together`);
  }
}

/** Shapes fit, and no two changes go to the same place. */
function checkChanges(
  name: string,
  changes: readonly Change[],
  target: SafetensorsEntry | undefined,
): void {
  const places = new Set<string>();
  for (const { pair, region } of changes) {
    const place = JSON.stringify([region.expert, region.offset]);
    if (places.has(place))
      throw new WeightsError(`${name}: two parts of the adapter go to one place`);
    places.add(place);
    if (!target || region.expert !== undefined) continue;
    const [rows, columns] = target.shape;
    const isInside = region.offset + rowsOf(pair) <= rows! && pair.a.shape.at(-1) === columns;
    const isWhole = changes.length > 1 || region.offset > 0 || rowsOf(pair) === rows;
    if (!isInside || !isWhole) {
      throw new WeightsError(
        `${pair.path}: changes ${rowsOf(pair)} x ${pair.a.shape.at(-1)}, but ${name} is ${target.shape.join(" x ")}`,
      );
    }
  }
}

/** Outputs of a module. */
export function rowsOf({ b }: LoraPair): number {
  return b.shape.at(-2)!;
}

function isExpert(path: string): boolean {
  return /\.experts\.(\d+\.)?\w+$/.test(path);
}

function leafOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

function withLeaf(path: string, leaf: string): string {
  return `${path.slice(0, path.lastIndexOf(".") + 1)}${leaf}`;
}
