/** The optimizer of every loop, besides its rate. */
export const adamDefaults = { beta1: 0.9, beta2: 0.95, eps: 1e-8 } as const;
