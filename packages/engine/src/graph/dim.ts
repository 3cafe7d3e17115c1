/**
 * A tensor size that may be known only at run time.
 *
 * A size is a polynomial with whole coefficients over named symbols ("tokens", "rank"), kept as a map
 * from monomial ("rank*tokens") to coefficient. That is enough to compare, multiply and add sizes while
 * a graph is built, so one compiled graph serves every length and a wrong reshape fails at build time.
 * The text of a size is canonical and computed once: sizes are equal when their texts are.
 */
export class Dim {
  readonly #terms: ReadonlyMap<string, number>;
  readonly #text: string;

  private constructor(terms: ReadonlyMap<string, number>) {
    this.#terms = terms;
    this.#text = textOf(terms);
  }

  /** A named size, bound to a number when the graph runs. */
  static symbol(name: string): Dim {
    return new Dim(new Map([[name, 1]]));
  }

  /** A fixed size, or the size itself when it already is one. */
  static of(value: DimLike): Dim {
    if (typeof value !== "number") return value;
    let fixed = fixedDims.get(value);
    if (fixed === undefined) {
      fixed = new Dim(new Map(value === 0 ? [] : [["", value]]));
      fixedDims.set(value, fixed);
    }
    return fixed;
  }

  plus(other: DimLike): Dim {
    const sum = new Map(this.#terms);
    for (const [monomial, coefficient] of Dim.of(other).#terms) {
      accumulate(sum, monomial, coefficient);
    }
    return new Dim(sum);
  }

  times(other: DimLike): Dim {
    const right = Dim.of(other);
    const [a, b] = [this.constant, right.constant];
    if (a === 1) return right;
    if (b === 1) return this;
    if (a !== undefined && b !== undefined) return Dim.of(a * b);
    const product = new Map<string, number>();
    for (const [left, leftCoefficient] of this.#terms) {
      for (const [monomial, coefficient] of right.#terms) {
        accumulate(product, multiplyMonomials(left, monomial), leftCoefficient * coefficient);
      }
    }
    return new Dim(product);
  }

  equals(other: DimLike): boolean {
    return this.#text === Dim.of(other).#text;
  }

  /** The value when it does not depend on any symbol. */
  get constant(): number | undefined {
    if (this.#terms.size === 0) return 0;
    return this.#terms.size === 1 ? this.#terms.get("") : undefined;
  }

  evaluate(bindings: DimBindings): number {
    const { constant } = this;
    if (constant !== undefined) return constant;
    let total = 0;
    for (const [monomial, coefficient] of this.#terms) {
      let value = coefficient;
      for (const symbol of monomial === "" ? [] : monomial.split("*")) {
        const bound = bindings[symbol];
        if (bound === undefined) throw new RangeError(`size "${symbol}" has no value`);
        value *= bound;
      }
      total += value;
    }
    return total;
  }

  toString(): string {
    return this.#text;
  }
}

const fixedDims = new Map<number, Dim>();

/** A fixed or symbolic size, as callers write it. */
export type DimLike = number | Dim;

/** Sizes of one tensor, outermost first. */
export type Shape = readonly Dim[];

/** Values of the symbols for one run. */
export type DimBindings = Readonly<Record<string, number>>;

export function shapeOf(dims: readonly DimLike[]): Shape {
  return dims.map((dim) => Dim.of(dim));
}

export function sizeOf(shape: readonly DimLike[]): Dim {
  return shape.reduce<Dim>((size, dim) => size.times(dim), Dim.of(1));
}

export function sameShape(left: Shape, right: Shape): boolean {
  return (
    left.length === right.length && left.every((dim, axis) => right[axis]?.equals(dim) === true)
  );
}

/** The shape of two values combined element by element, repeating axes of size 1. */
export function broadcastShapes(left: Shape, right: Shape): Shape {
  const rank = Math.max(left.length, right.length);
  const one = Dim.of(1);
  return Array.from({ length: rank }, (_, axis) => {
    const l = left[axis - rank + left.length] ?? one;
    const r = right[axis - rank + right.length] ?? one;
    if (l.equals(r) || r.equals(one)) return l;
    if (l.equals(one)) return r;
    throw new Error(`cannot broadcast ${describeShape(left)} with ${describeShape(right)}`);
  });
}

export function describeShape(shape: readonly DimLike[]): string {
  return `[${shape.map((dim) => dim.toString()).join(", ")}]`;
}

function textOf(terms: ReadonlyMap<string, number>): string {
  if (terms.size === 0) return "0";
  const texts = Array.from(terms, ([monomial, coefficient]) => {
    if (monomial === "") return String(coefficient);
    return coefficient === 1 ? monomial : `${coefficient}*${monomial}`;
  });
  return texts.length === 1 ? texts.join("") : texts.toSorted().join("+");
}

function accumulate(terms: Map<string, number>, monomial: string, coefficient: number): void {
  const sum = (terms.get(monomial) ?? 0) + coefficient;
  if (sum === 0) terms.delete(monomial);
  else terms.set(monomial, sum);
}

function multiplyMonomials(left: string, right: string): string {
  if (left === "") return right;
  if (right === "") return left;
  return [...left.split("*"), ...right.split("*")].toSorted().join("*");
}
