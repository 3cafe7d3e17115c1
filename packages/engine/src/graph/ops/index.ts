export { maskedAttention, type AttentionOperands } from "./attention.js";
export { cachedAttention, headStep, type CachedAttentionOperands } from "./cached-attention.js";
export { cachedConvolution, cachedScan, type CachedScanOperands } from "./cached-scan.js";
export { chunkedScan, type ChunkedScanOperands } from "./chunked-scan.js";
export { causalConvolution } from "./convolution.js";
export {
  add,
  divide,
  exp,
  gatedGelu,
  gatedSilu,
  maximum,
  minimum,
  multiply,
  negate,
  scale,
  sigmoid,
  silu,
  squareRoot,
  stopGradient,
  subtract,
} from "./elementwise.js";
export { withHiddenProduct } from "./hidden-product.js";
export { int8Linear, widened, type Int8Digits, type Int8Weight } from "./int8-linear.js";
export { addTo, batchMatmul, linear, matmul, type MatmulOptions } from "./matmul.js";
export { rmsNorm } from "./normalize.js";
export { reduceSum } from "./reduce.js";
export { stateDecay } from "./state-decay.js";
export { rotary, type RotaryTables } from "./rotary.js";
export { gatherRows, scatterRows } from "./rows.js";
export { concat, dimAt, expand, reshape, split, transpose, zeros } from "./shape.js";
export { logSoftmax, softmax, targetLogprobs } from "./softmax.js";
