import { ArgumentError } from "../errors/argument-error.js";
import { firstValues, inspectSymbol } from "./inspect.js";
import {
  enumeration,
  floats,
  integer,
  integers,
  array,
  literal,
  mapped,
  optional,
  strictObject,
  tagged,
  tokens,
  type InputOf,
  type ValueOf,
} from "../schema/schema.js";
import { ownArray, narrowIntegers } from "../schema/typed-lists.js";
import { csrToDense, denseToCsr, validateCsr } from "./sparse-csr.js";

export const TensorDtype = enumeration(["int64", "float32"]);
/** Number formats of tensors on the wire. */
export type TensorDtype = ValueOf<typeof TensorDtype>;

/** How values are held: float32 as they are, int64 in 32 bits each while all of them fit. */
export type TensorStorage = Float32Array | Int32Array | BigInt64Array;

/** Numbers from which a tensor can be made without saying its dtype. */
export type TypedArray =
  | Float32Array
  | Float64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array;

/** A tensor of some library, by its row-major values and its shape. */
export interface TensorLike {
  /** The values, flat and row-major. */
  readonly data: TypedArray;
  /** Sizes of the dimensions. */
  readonly shape: readonly number[];
}

/** Parts of a `TensorData`. */
export interface TensorDataInit {
  /** The values, flat and row-major; of a sparse tensor the stored ones only. */
  readonly data: TypedArray;
  /** Sizes of the dimensions; null or absent means one dimension. */
  readonly shape?: readonly number[] | null | undefined;
  /** Where each row starts among the stored values; for a sparse (CSR) tensor. */
  readonly sparseCrowIndices?: Int32Array | readonly number[] | null | undefined;
  /** The column of each stored value; for a sparse (CSR) tensor. */
  readonly sparseColIndices?: Int32Array | readonly number[] | null | undefined;
}

/**
 * Numbers with a dtype and a shape, as the API exchanges them. Immutable.
 *
 * - `data` is flat and row-major; sparse (CSR) tensors hold their stored values only.
 * - `shape` null means one dimension; a scalar has no shape either.
 */
export class TensorData {
  /** The values, flat and row-major; of a sparse tensor the stored ones only. */
  readonly data: TensorStorage;
  /** The number format on the wire. */
  readonly dtype: TensorDtype;
  /** Sizes of the dimensions; null means one dimension. */
  readonly shape: readonly number[] | null;
  /** Where each row starts among the stored values; null when every value is stored. */
  readonly sparseCrowIndices: Int32Array | null;
  /** The column of each stored value; null when every value is stored. */
  readonly sparseColIndices: Int32Array | null;

  constructor(init: TensorDataInit) {
    this.data = toStorage(init.data, "data");
    this.dtype = this.data instanceof Float32Array ? "float32" : "int64";
    this.shape = init.shape ? [...init.shape] : null;
    this.sparseCrowIndices = toIndices(init.sparseCrowIndices);
    this.sparseColIndices = toIndices(init.sparseColIndices);
    this.#validate();
  }

  /** From a typed array: float kinds become float32, signed integer kinds int64. */
  static fromTypedArray(data: TypedArray, shape?: readonly number[]): TensorData {
    return new TensorData({ data, shape: shape ?? [data.length] });
  }

  /** From a number or (nested, rectangular) lists of numbers. */
  static fromNested(
    value: number | bigint | NestedList<number | bigint | boolean>,
    dtype: TensorDtype,
    field = "data",
  ): TensorData {
    const shape = nestedShape(value, field);
    const flat = flatten(value);
    const data = dtype === "float32" ? floatValues(flat, field) : integerValues(flat, field);
    return new TensorData({ data, shape: shape.length === 0 ? null : shape });
  }

  /** Plain lists, for logs and files. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { dtype, shape } = this;
    // JSON has no bigints; beyond 2^53 they are text.
    const plain = (value: number | bigint): number | string =>
      typeof value === "number" || Number.isSafeInteger(Number(value)) ? Number(value) : `${value}`;
    const sparse = this.isSparse
      ? {
          sparseCrowIndices: [...(this.sparseCrowIndices ?? [])],
          sparseColIndices: [...(this.sparseColIndices ?? [])],
        }
      : {};
    return {
      dtype,
      shape,
      data: Array.from<number | bigint, unknown>(this.data, plain),
      ...sparse,
    };
  }

  /** How it is printed. */
  [inspectSymbol](): string {
    const shape = this.shape ?? [this.data.length];
    const kind = this.isSparse ? `sparse ${this.dtype}` : this.dtype;
    return `TensorData(${kind} [${shape.join(", ")}]: ${firstValues(this.data)})`;
  }

  /** Whether only the values that are not 0 are stored. */
  get isSparse(): boolean {
    return this.sparseCrowIndices !== null;
  }

  /** The same tensor with every value stored. */
  toDense(): TensorData {
    if (!this.sparseCrowIndices || !this.sparseColIndices || !this.shape) return this;
    const data = csrToDense(
      this.data,
      this.sparseCrowIndices,
      this.sparseColIndices,
      this.shape as readonly [number, number],
    );
    return new TensorData({ data, shape: this.shape });
  }

  /** The same tensor, as CSR when it has two dimensions and that takes less space. */
  toCompact(): TensorData {
    if (this.isSparse || this.shape?.length !== 2) return this;
    const csr = denseToCsr(this.data, this.shape as readonly [number, number]);
    if (!csr) return this;
    return new TensorData({
      data: csr.values,
      shape: this.shape,
      sparseCrowIndices: csr.crowIndices,
      sparseColIndices: csr.colIndices,
    });
  }

  /** All values as a flat list; integers beyond 2^53 stay bigints. */
  toList(): (number | bigint)[] {
    const { data } = this.toDense();
    if (!(data instanceof BigInt64Array)) return Array.from(data);
    return Array.from(data, (item) => (Number.isSafeInteger(Number(item)) ? Number(item) : item));
  }

  /** All values as nested lists of the tensor's shape. */
  toNested(): NestedList<number | bigint> | number | bigint {
    const flat = this.toList();
    return nest(flat, this.shape ?? [flat.length]);
  }

  #validate(): void {
    const { sparseCrowIndices: crow, sparseColIndices: col } = this;
    if ((crow === null) !== (col === null)) {
      throw new ArgumentError(
        crow === null ? "sparse_crow_indices" : "sparse_col_indices",
        "a sparse tensor needs both index lists",
      );
    }
    if (crow && col) {
      validateCsr(this.data.length, crow, col, this.shape);
    } else if (this.shape && elementCount(this.shape, "shape") !== this.data.length) {
      throw new ArgumentError(
        "shape",
        `[${this.shape.join(", ")}] does not hold ${this.data.length} values`,
      );
    }
  }
}

const sparseIndices = optional(tokens, { since: "0.18.0" });
const common = {
  shape: optional(array(integer)),
  sparseCrowIndices: sparseIndices,
  sparseColIndices: sparseIndices,
};

const TensorDataFields = tagged("TensorData", "dtype", {
  float32: strictObject("TensorData", { data: floats, dtype: literal("float32"), ...common }),
  int64: strictObject("TensorData", { data: integers, dtype: literal("int64"), ...common }),
});

type TensorDataFields = ValueOf<typeof TensorDataFields>;

export const TensorDataSchema = mapped<
  TensorData,
  TensorDataInit,
  TensorDataFields,
  InputOf<typeof TensorDataFields>
>("TensorData", TensorDataFields, {
  wrap: (inner) => new TensorData(inner),
  unwrap: (value) => {
    const tensor = value instanceof TensorData ? value : new TensorData(value);
    const rest = {
      shape: tensor.shape ? [...tensor.shape] : null,
      sparseCrowIndices: tensor.sparseCrowIndices,
      sparseColIndices: tensor.sparseColIndices,
    };
    return tensor.data instanceof Float32Array
      ? { data: new Float64Array(tensor.data), dtype: "float32", ...rest }
      : { data: tensor.data, dtype: "int64", ...rest };
  },
});

/** Holds a typed array as the wire needs it; refuses kinds without a dtype by name. */
export function toStorage(data: TypedArray, field: string): TensorStorage {
  if (data instanceof Float32Array || data instanceof Int32Array) return data;
  if (data instanceof BigInt64Array) return narrowIntegers(data);
  if (data instanceof Float64Array) return new Float32Array(data);
  if (data instanceof Int8Array || data instanceof Int16Array) return new Int32Array(data);
  const other: unknown = ownArray(data);
  if (other !== data) return toStorage(other as TypedArray, field);
  const kind = ArrayBuffer.isView(other) ? other.constructor.name : typeof other;
  if (kind === "Float16Array") return Float32Array.from(other as ArrayLike<number>);
  throw new ArgumentError(
    field,
    `${kind} is not supported; use Float32Array for float32 or Int32Array/BigInt64Array for int64`,
  );
}

function toIndices(list: Int32Array | readonly number[] | null | undefined): Int32Array | null {
  if (list === null || list === undefined) return null;
  return list instanceof Int32Array ? list : Int32Array.from(list);
}

function floatValues(flat: readonly unknown[], field: string): Float32Array {
  return Float32Array.from(flat, (item) => Number(checkNumeric(item, field)));
}

function integerValues(flat: readonly unknown[], field: string): Int32Array | BigInt64Array {
  const isNarrow = flat.every((item) => typeof item === "number" && (item | 0) === item);
  if (isNarrow) return Int32Array.from(flat as number[]);
  return narrowIntegers(
    BigInt64Array.from(flat, (item) => {
      const value = checkNumeric(item, field);
      if (typeof value === "number" && !Number.isSafeInteger(value)) {
        throw new ArgumentError(
          field,
          Number.isInteger(value)
            ? `${value} is beyond 2^53 and not exact any more; pass a bigint`
            : `expected integers, got ${value}`,
        );
      }
      return BigInt(value);
    }),
  );
}

function checkNumeric(item: unknown, field: string): number | bigint {
  if (typeof item === "number" || typeof item === "bigint") return item;
  if (typeof item === "boolean") return item ? 1 : 0;
  throw new ArgumentError(field, `expected numbers, got ${item === null ? "null" : typeof item}`);
}

/** How many values a tensor of this shape holds; throws on sizes that are not counts. */
export function elementCount(shape: readonly number[], field: string): number {
  let count = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new ArgumentError(field, `a dimension must be a whole number, got ${size}`);
    }
    count *= size;
  }
  if (!Number.isSafeInteger(count)) {
    throw new ArgumentError(field, `[${shape.join(", ")}] is too large`);
  }
  return count;
}

/** The shape of nested lists; throws when rows differ in length or depth. */
export function nestedShape(list: unknown, field: string): number[] {
  if (!Array.isArray(list)) return [];
  const depth = list.filter(Array.isArray).length;
  if (depth === 0) return [list.length];
  const inner = nestedShape(list[0], field);
  const isSame = (other: readonly number[]): boolean =>
    other.length === inner.length && other.every((size, axis) => size === inner[axis]);
  if (depth !== list.length || !list.every((row) => isSame(nestedShape(row, field)))) {
    throw new ArgumentError(
      field,
      "the list is ragged: all rows must have the same length and depth",
    );
  }
  return [list.length, ...inner];
}

/** The values of nested lists in row-major order; a lone value is a list of one. */
export function flatten(value: unknown): unknown[] {
  if (!Array.isArray(value)) return [value];
  if (!value.some(Array.isArray)) return value;
  const flat: unknown[] = [];
  for (const item of value) for (const inner of flatten(item)) flat.push(inner);
  return flat;
}

/** Nested lists of a flat list; a shape of one dimension gives the list itself. */
export function nest<T>(flat: readonly T[], shape: readonly number[]): NestedList<T> | T {
  if (shape.length === 0) return flat[0]!;
  if (shape.length === 1) return [...flat];
  const [rows = 0, ...rest] = shape;
  const rowSize = elementCount(rest, "shape");
  return Array.from({ length: rows }, (_, row) =>
    nest(flat.slice(row * rowSize, (row + 1) * rowSize), rest),
  );
}

/** Lists of lists of any depth. */
export type NestedList<T> = (T | NestedList<T>)[];
