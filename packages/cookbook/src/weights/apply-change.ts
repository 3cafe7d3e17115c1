import type { FloatTensor } from "./adapter.js";
import type { Region } from "./plan.js";

/** Adds `scale * B A` to a region of a tensor. */
export function addProduct(
  target: FloatTensor,
  a: FloatTensor,
  b: FloatTensor,
  scale: number,
  region: Region,
): void {
  const [rank, inputs] = a.shape as [number, number];
  const outputs = b.shape[0]!;
  const width = target.shape.at(-1)!;
  const start = (region.expert ?? 0) * target.shape.at(-2)! * width;
  const row = new Float32Array(inputs);
  for (let output = 0; output < outputs; output++) {
    row.fill(0);
    for (let k = 0; k < rank; k++) {
      const factor = scale * b.data[output * rank + k]!;
      for (let input = 0; input < inputs; input++)
        row[input]! += factor * a.data[k * inputs + input]!;
    }
    const place = region.offset + output * region.stride;
    const step = region.isTransposed ? width : 1;
    const first = start + (region.isTransposed ? place : place * width);
    for (let input = 0; input < inputs; input++) target.data[first + input * step]! += row[input]!;
  }
}
