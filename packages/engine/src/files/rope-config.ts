import { isObject, type JsonFields } from "@tinker-ts/hub/files";

/** Rotary position embedding; `llama3` stretches the low frequencies as Llama 3.1 and later do. */
export interface RopeConfig {
  readonly theta: number;
  readonly scaling: null | {
    readonly kind: "llama3";
    readonly factor: number;
    readonly lowFrequencyFactor: number;
    readonly highFrequencyFactor: number;
    readonly originalContextLength: number;
  };
}

/**
 * Reads the rotary embedding in both spellings: `rope_theta` with `rope_scaling` beside it, as
 * transformers wrote until version 4, or everything inside `rope_parameters`, as it does since 5.
 */
export function parseRopeConfig(config: JsonFields): RopeConfig {
  const rope = config.nested("rope_scaling") ?? config.nested("rope_parameters");
  for (const fields of [config, rope]) {
    if (fields && fields.positive("partial_rotary_factor", 1) !== 1) {
      throw fields.refuse(
        "partial_rotary_factor",
        "only 1 (all of each head rotates) is supported",
      );
    }
  }
  if (!rope) return { theta: config.positive("rope_theta", 10_000), scaling: null };
  const nested = Object.keys(rope.json).find((name) => isObject(rope.get(name)));
  if (nested) throw rope.refuse(nested, "all layers must share one rotation");
  const theta = rope.positive("rope_theta", config.positive("rope_theta", 10_000));
  return { theta, scaling: parseScaling(rope) };
}

function parseScaling(fields: JsonFields): RopeConfig["scaling"] {
  const field = fields.get("rope_type") === undefined ? "type" : "rope_type";
  const kind = fields.string(field, "default");
  if (kind === "default") return null;
  if (kind !== "llama3") {
    throw fields.refuse(field, 'only "default" and "llama3" position scaling are supported');
  }
  const lowFrequencyFactor = fields.positive("low_freq_factor");
  const highFrequencyFactor = fields.positive("high_freq_factor");
  if (highFrequencyFactor <= lowFrequencyFactor) {
    throw fields.refuse("high_freq_factor", `must exceed low_freq_factor (${lowFrequencyFactor})`);
  }
  return {
    kind,
    factor: fields.positive("factor"),
    lowFrequencyFactor,
    highFrequencyFactor,
    originalContextLength: fields.integer("original_max_position_embeddings", 1),
  };
}
