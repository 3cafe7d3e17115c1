import { broadcastShapes, sameShape, type Shape } from "../dim.js";
import type { Tensor, Vjp } from "../tensor.js";
import { reduceSum } from "./reduce.js";
import { reshape } from "./shape.js";

/** `left + right`, broadcasting as ONNX does. */
export function add(left: Tensor, right: Tensor): Tensor {
  return binary("Add", left, right, ([gradient], wants) => [
    wants(0) ? unbroadcast(gradient, left.shape) : undefined,
    wants(1) ? unbroadcast(gradient, right.shape) : undefined,
  ]);
}

/** `left - right`. */
export function subtract(left: Tensor, right: Tensor): Tensor {
  return binary("Sub", left, right, ([gradient], wants) => [
    wants(0) ? unbroadcast(gradient, left.shape) : undefined,
    wants(1) ? negate(unbroadcast(gradient, right.shape)) : undefined,
  ]);
}

/** `left * right`, element by element. */
export function multiply(left: Tensor, right: Tensor): Tensor {
  return binary("Mul", left, right, ([gradient], wants) => [
    wants(0) ? unbroadcast(multiply(given(gradient), right), left.shape) : undefined,
    wants(1) ? unbroadcast(multiply(given(gradient), left), right.shape) : undefined,
  ]);
}

/** `left / right`, element by element. */
export function divide(left: Tensor, right: Tensor): Tensor {
  const result: Tensor = binary("Div", left, right, ([gradient], wants) => {
    const ofLeft = divide(given(gradient), right);
    return [
      wants(0) ? unbroadcast(ofLeft, left.shape) : undefined,
      wants(1) ? negate(unbroadcast(multiply(ofLeft, result), right.shape)) : undefined,
    ];
  });
  return result;
}

/** `value * factor` for a fixed number. */
export function scale(value: Tensor, factor: number): Tensor {
  return multiply(value, value.graph.scalar(factor));
}

/** `-value`. */
export function negate(value: Tensor): Tensor {
  return unary("Neg", value, (gradient) => negate(gradient));
}

/** `e ** value`. */
export function exp(value: Tensor): Tensor {
  const result: Tensor = unary("Exp", value, (gradient) => multiply(gradient, result));
  return result;
}

/** The square root. */
export function squareRoot(value: Tensor): Tensor {
  const result: Tensor = unary("Sqrt", value, (gradient) => divide(scale(gradient, 0.5), result));
  return result;
}

/** The logistic function. */
export function sigmoid(value: Tensor): Tensor {
  const result: Tensor = unary("Sigmoid", value, (gradient) => {
    const one = value.graph.scalar(1);
    return multiply(gradient, multiply(result, subtract(one, result)));
  });
  return result;
}

/** `gate * sigmoid(gate) * value`: the product of a value with the SiLU of its gate. */
export function gatedSilu(gate: Tensor, value: Tensor): Tensor {
  const { graph } = gate;
  const opened = graph.applyOne({
    type: "QuickGelu",
    domain: "com.microsoft",
    inputs: [gate],
    attributes: { alpha: { float: 1 } },
    shape: gate.shape,
  });
  const result: Tensor = graph.applyOne({
    type: "Mul",
    inputs: [opened, value],
    gradientInputs: [gate, value],
    shape: gate.shape,
    vjp: ([gradient], wants) => {
      // The slope of SiLU is s + silu (1 - s); times the value it is result + s (value - result).
      const ofGate = (): Tensor => add(result, multiply(sigmoid(gate), subtract(value, result)));
      return [
        wants(0) ? multiply(given(gradient), ofGate()) : undefined,
        wants(1) ? multiply(given(gradient), opened) : undefined,
      ];
    },
  });
  return result;
}

/** `value * sigmoid(value)`. */
export function silu(value: Tensor): Tensor {
  const result: Tensor = value.graph.applyOne({
    type: "QuickGelu",
    domain: "com.microsoft",
    inputs: [value],
    attributes: { alpha: { float: 1 } },
    shape: value.shape,
    vjp: ([gradient]) => {
      const share = sigmoid(value);
      const rest = subtract(value.graph.scalar(1), share);
      return [multiply(given(gradient), add(share, multiply(result, rest)))];
    },
  });
  return result;
}

/** sqrt(2 / pi), and the weight of the cube inside the approximation of GELU by tanh. */
const [geluLinear, geluCubic] = [Math.sqrt(2 / Math.PI), 0.044715];

/** The product of a value with the GELU of its gate, approximated by tanh as in GPT-2 and Gemma. */
export function gatedGelu(gate: Tensor, value: Tensor): Tensor {
  const { graph } = gate;
  const opened = graph.applyOne({
    type: "FastGelu",
    domain: "com.microsoft",
    inputs: [gate],
    shape: gate.shape,
  });
  return graph.applyOne({
    type: "Mul",
    inputs: [opened, value],
    gradientInputs: [gate, value],
    shape: gate.shape,
    vjp: ([gradient], wants) => {
      // The approximation is gate * s with s = sigmoid(2 u) and u = a (gate + b gate^3); so its slope is
      // s + gelu (1 - s) 2 a (1 + 3 b gate^2).
      const ofGate = (): Tensor => {
        const square = multiply(gate, gate);
        const polynomial = (constant: number, quadratic: number): Tensor =>
          add(scale(square, quadratic), graph.scalar(constant));
        const inner = polynomial(2 * geluLinear, 2 * geluLinear * geluCubic);
        const share = sigmoid(multiply(gate, inner));
        const bend = multiply(opened, polynomial(2 * geluLinear, 6 * geluLinear * geluCubic));
        const slope = add(share, multiply(bend, subtract(graph.scalar(1), share)));
        return multiply(slope, value);
      };
      return [
        wants(0) ? multiply(given(gradient), ofGate()) : undefined,
        wants(1) ? multiply(given(gradient), opened) : undefined,
      ];
    },
  });
}

/** The smaller of two values; where they are equal the gradient flows to the left one. */
export function minimum(left: Tensor, right: Tensor): Tensor {
  return pick("Min", "LessOrEqual", left, right);
}

/** The larger of two values; where they are equal the gradient flows to the left one. */
export function maximum(left: Tensor, right: Tensor): Tensor {
  return pick("Max", "GreaterOrEqual", left, right);
}

/** The value itself, through which no gradient flows. */
export function stopGradient(value: Tensor): Tensor {
  return value.graph.applyOne({ type: "Identity", inputs: [value], shape: value.shape });
}

function pick(type: string, comparison: string, left: Tensor, right: Tensor): Tensor {
  const { graph } = left;
  return binary(type, left, right, ([gradient], wants) => {
    const shape = broadcastShapes(left.shape, right.shape);
    const inputs = [left, right];
    const keepsLeft = graph.applyOne({ type: comparison, inputs, shape, dtype: "bool" });
    const zero = graph.scalar(0);
    const part = (whenTrue: Tensor, whenFalse: Tensor): Tensor =>
      graph.applyOne({ type: "Where", inputs: [keepsLeft, whenTrue, whenFalse], shape });
    return [
      wants(0) ? unbroadcast(part(given(gradient), zero), left.shape) : undefined,
      wants(1) ? unbroadcast(part(zero, given(gradient)), right.shape) : undefined,
    ];
  });
}

function binary(type: string, left: Tensor, right: Tensor, vjp: Vjp): Tensor {
  const shape = broadcastShapes(left.shape, right.shape);
  return left.graph.applyOne({ type, inputs: [left, right], shape, vjp });
}

function unary(type: string, value: Tensor, backward: (gradient: Tensor) => Tensor): Tensor {
  return value.graph.applyOne({
    type,
    inputs: [value],
    shape: value.shape,
    vjp: ([gradient]) => [backward(given(gradient))],
  });
}

/** Sums a gradient over the axes along which a value was repeated. */
function unbroadcast(maybeGradient: Tensor | undefined, shape: Shape): Tensor {
  const gradient = given(maybeGradient);
  if (sameShape(gradient.shape, shape)) return gradient;
  const missing = gradient.shape.length - shape.length;
  const axes = gradient.shape.flatMap((dim, axis) => {
    const own = axis < missing ? undefined : shape[axis - missing];
    return own === undefined || !own.equals(dim) ? [axis] : [];
  });
  return reshape(reduceSum(gradient, axes), shape);
}

function given(gradient: Tensor | undefined): Tensor {
  if (gradient === undefined) throw new Error("the gradient of the only output is missing");
  return gradient;
}
