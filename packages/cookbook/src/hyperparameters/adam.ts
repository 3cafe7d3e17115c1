/** Optimizer settings of every loop, except the learning rate. */
export const adamDefaults = { beta1: 0.9, beta2: 0.95, eps: 1e-8 } as const;
