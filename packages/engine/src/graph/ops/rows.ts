import type { Dim } from "../dim.js";
import type { Tensor } from "../tensor.js";
import { dimAt, reshape, zeros } from "./shape.js";

// Gathering rows and scattering rows into zeros are each other's transpose, so each is the gradient of
// the other. Together they carry packed tokens to a padded layout and back without touching padding.

/** `result[i] = rows[index[i]]`; an index may occur once only when a gradient is wanted. */
export function gatherRows(rows: Tensor, index: Tensor): Tensor {
  return rows.graph.applyOne({
    type: "Gather",
    inputs: [rows, index],
    attributes: { axis: 0 },
    shape: [...index.shape, ...rows.shape.slice(1)],
    vjp: ([gradient]) => [gradient && scatterRows(gradient, index, dimAt(rows, 0))],
  });
}

/** `result[index[i]] = rows[i]` and zero elsewhere; every index occurs at most once. */
export function scatterRows(rows: Tensor, index: Tensor, count: Dim): Tensor {
  const shape = [count, ...rows.shape.slice(1)];
  return rows.graph.applyOne({
    type: "ScatterND",
    inputs: [zeros(rows, shape), reshape(index, [dimAt(index, 0), 1]), rows],
    shape,
    vjp: ([gradient]) => [undefined, undefined, gradient && gatherRows(gradient, index)],
  });
}
