import { decodeJson, type WireValue } from "tinker-ts/wire";
import { badRequest } from "../errors/api-error.js";

/** The only optimizer that the engine has. */
export const adamw = "adamw";

/** Refuses any other optimizer than AdamW by its name: training would go on with the wrong one. */
export function checkOptimizer(field: string, config: { readonly type: string } | null): void {
  if (config === null || config.type === adamw) return;
  throw badRequest(
    `${field}.type`,
    `${JSON.stringify(config.type.slice(0, 100))} is not offered here; leave ${field} out or use ${adamw}`,
  );
}

/** An optimizer step with its settings in the one form that is stored. */
export function toAdamStep(request: WireValue<"OptimStepRequest">): WireValue<"OptimStepRequest"> {
  const { optimizerParams, adamParams } = request;
  checkOptimizer("optimizer_params", optimizerParams);
  const settings = optimizerParams?.unknownFields ?? {};
  return {
    ...request,
    optimizerParams: null,
    adamParams: adamParams ?? decodeJson("AdamParams", settings, { unknown: "ignore" }),
  };
}
