import type { JsonFields } from "@tinker-ts/hub/files";
import type { ModelConfig } from "./model-config.js";

/** What tells the attention of one layer from that of another. */
export interface LayerKind {
  /** Tokens that a token sees, itself included; null for all before it. */
  readonly window: number | null;
  /** Which rotation queries and keys go through; null for none. */
  readonly rotation: Rotation | null;
}

/** A rotation, by the field of the configuration that describes it. */
export type Rotation = "rope" | "localRope";

/**
 * Which layers of a family have a window: none; all, if the file sets one; those that its flags choose;
 * all but every n-th; or those without rotation, if its flag is set.
 */
export type WindowRule = "none" | "all" | "flags" | "pattern" | "unrotated";

/** What a family says of its layers. */
export interface LayerTraits {
  readonly windows: WindowRule;
  /** Window of a file that does not speak of one. */
  readonly defaultWindow: number | null;
  /** Some layers do not rotate. */
  readonly unrotatedLayers: boolean;
  /** Layers with a window rotate in a way of their own. */
  readonly ownRotation: boolean;
}

const plainKind: LayerKind = { window: null, rotation: "rope" };

/** The kind of one layer. */
export function layerKind({ layerKinds }: ModelConfig, layer: number): LayerKind {
  return layerKinds?.[layer] ?? plainKind;
}

/** The window of every layer. */
export function layerWindows(config: ModelConfig): readonly (number | null)[] {
  return Array.from({ length: config.layers }, (_, layer) => layerKind(config, layer).window);
}

/** A text that is the same for layers of the same kind. */
export function kindKey({ window, rotation }: LayerKind): string {
  return `${rotation ?? "unrotated"}/${window ?? "all"}`;
}

/** Reads what tells layers apart; undefined when all of them see everything and rotate alike. */
export function parseLayerKinds(
  config: JsonFields,
  layers: number,
  contextLength: number,
  traits: LayerTraits,
): readonly LayerKind[] | undefined {
  const rotated = traits.unrotatedLayers ? parseRotated(config, layers) : [];
  const sliding = parseSliding(config, layers, rotated, traits);
  const window = sliding.includes(true) ? parseWindow(config, contextLength, traits) : null;
  const kinds = Array.from({ length: layers }, (_, layer): LayerKind => {
    const slides = sliding[layer] === true;
    const rotation = slides && traits.ownRotation ? "localRope" : "rope";
    return {
      window: slides ? window : null,
      rotation: rotated[layer] === false ? null : rotation,
    };
  });
  const isPlain = (kind: LayerKind): boolean => kindKey(kind) === kindKey(plainKind);
  return kinds.every(isPlain) ? undefined : kinds;
}

/** Whether each layer has a window, be it one that no sequence can leave. */
function parseSliding(
  config: JsonFields,
  layers: number,
  rotated: readonly boolean[],
  { windows }: LayerTraits,
): readonly boolean[] {
  const named = parseLayerTypes(config, layers);
  const all = (slides: (layer: number) => boolean): readonly boolean[] =>
    Array.from({ length: layers }, (_, layer) => slides(layer));
  switch (windows) {
    case "none":
      if (named?.includes(true) === true) {
        throw config.refuse("layer_types", "this family has full attention in all layers");
      }
      return [];
    case "all":
      if (named !== undefined && new Set(named).size > 1) {
        throw config.refuse("layer_types", "this family has one kind of attention in all layers");
      }
      return all(() => true);
    case "flags": {
      const first = config.integer("max_window_layers", 0, 28);
      const used = config.boolean("use_sliding_window", false);
      return named ?? all((layer) => used && layer >= first);
    }
    case "pattern": {
      const interval = config.integer("sliding_window_pattern", 1, 6);
      return named ?? all((layer) => (layer + 1) % interval !== 0);
    }
    case "unrotated": {
      const used = config.boolean("use_sliding_window", false);
      return named ?? all((layer) => used && rotated[layer] === false);
    }
  }
}

/** Which layers `layer_types` gives a window; undefined when the file does not name them. */
function parseLayerTypes(config: JsonFields, layers: number): readonly boolean[] | undefined {
  const types = config.get("layer_types");
  if (types === undefined) return undefined;
  const known = ["full_attention", "sliding_attention"];
  if (!Array.isArray(types) || !types.every((type) => known.includes(type))) {
    throw config.refuse("layer_types", `the supported kinds of layers are ${known.join(" and ")}`);
  }
  if (types.length !== layers) throw config.refuse("layer_types", `there are ${layers} layers`);
  return types.map((type) => type === "sliding_attention");
}

// Unlike an absent window, which means the default, null means none. One that no sequence within the
// context can leave hides nothing.
function parseWindow(
  config: JsonFields,
  contextLength: number,
  { defaultWindow }: LayerTraits,
): number | null {
  if (config.json["sliding_window"] === null) return null;
  if (config.get("sliding_window") === undefined && defaultWindow === null) return null;
  const window = config.integer("sliding_window", 1, defaultWindow ?? undefined);
  return window >= contextLength ? null : window;
}

/** Which layers rotate: `no_rope_layers` has a 1, against its name, for every layer that does. */
function parseRotated(config: JsonFields, layers: number): readonly boolean[] {
  const field = "no_rope_layers";
  const list = config.get(field);
  if (list === undefined) {
    const interval = config.integer("no_rope_layer_interval", 1, 4);
    return Array.from({ length: layers }, (_, layer) => (layer + 1) % interval !== 0);
  }
  const isFlag = (value: unknown): boolean => value === 0 || value === 1;
  if (!Array.isArray(list) || list.length < layers || !list.every(isFlag)) {
    throw config.refuse(field, `must be a list with 0 or 1 for each of ${layers} layers`);
  }
  return list.slice(0, layers).map((value) => value === 1);
}
