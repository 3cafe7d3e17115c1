import type { JsonFields } from "../files/json-fields.js";
import type { Mixer } from "./mixer-config.js";
import type { ModelConfig } from "./model-config.js";

/** Features in which layers differ. */
export interface LayerKind {
  /** @default "attention" */
  readonly mixer?: Mixer;
  /** @default "dense" */
  readonly feedForward?: FeedForward;
  /** Size of the attention window in tokens, including the current one; null for no window. */
  readonly window: number | null;
  /** Which rotation queries and keys go through; null for none. */
  readonly rotation: Rotation | null;
}

/** The feed-forward block of a layer. */
export type FeedForward = "dense";

/** A rotation, by the field of the configuration that describes it. */
export type Rotation = "rope" | "localRope";

/**
 * Which layers of a family have a window: none; all, if the file sets one; those that its flags choose;
 * all but every n-th; or those without rotation, if its flag is set.
 */
export type WindowRule = "none" | "all" | "flags" | "pattern" | "unrotated";

/** Rules of a family for its layers. */
export interface LayerTraits {
  readonly windows: WindowRule;
  /** Window if the file has none. */
  readonly defaultWindow: number | null;
  /** Every n-th layer sees everything, where the rule is "pattern" and the file names no number. */
  readonly interval?: number;
  /** Some layers do not rotate. */
  readonly unrotatedLayers: boolean;
  /** Layers with a window have a rotation of their own. */
  readonly ownRotation: boolean;
  /** Layers with another mixer than attention. */
  readonly hybrid?: HybridTraits;
}

/** The fields that give the mixer of each layer. */
export interface HybridTraits {
  /** The other mixer. */
  readonly mixer: Exclude<Mixer, "attention">;
  /** Its name in `layer_types`. */
  readonly names: readonly string[];
  /** The name of attention in `layer_types`. */
  readonly attentionNames: readonly string[];
  /** Whether a layer has attention, where the file has no list of types. */
  readonly hasAttention: (config: JsonFields, layer: number) => boolean;
  /** Attention does not rotate when `position_embedding_type` is not "rope". */
  readonly optionalRotation?: boolean;
}

const plainKind: LayerKind = { window: null, rotation: "rope" };

/** The kind of one layer. */
export function layerKind({ layerKinds }: ModelConfig, layer: number): LayerKind {
  return layerKinds?.[layer] ?? plainKind;
}

/** The mixer of a layer of some kind. */
export function mixerOf({ mixer = "attention" }: LayerKind): Mixer {
  return mixer;
}

/** The feed-forward block of a layer of some kind. */
export function feedForwardOf({ feedForward = "dense" }: LayerKind): FeedForward {
  return feedForward;
}

/** The kinds of all layers. */
export function allLayerKinds(config: ModelConfig): readonly LayerKind[] {
  return Array.from({ length: config.layers }, (_, layer) => layerKind(config, layer));
}

/** The window of every layer that has attention. */
export function layerWindows(config: ModelConfig): readonly (number | null)[] {
  return allLayerKinds(config)
    .filter((kind) => mixerOf(kind) === "attention")
    .map(({ window }) => window);
}

/** A key that is equal for layers of the same kind. */
export function kindKey(kind: LayerKind): string {
  const mixer = mixerOf(kind);
  return mixer === "attention" ? `${kind.rotation ?? "unrotated"}/${kind.window ?? "all"}` : mixer;
}

/** Reads the kinds of layers; undefined if all have full attention with one rotation. */
export function parseLayerKinds(
  config: JsonFields,
  layers: number,
  contextLength: number,
  traits: LayerTraits,
): readonly LayerKind[] | undefined {
  const kinds = traits.hybrid
    ? parseHybrid(config, layers, traits.hybrid)
    : parseAttentionKinds(config, layers, contextLength, traits);
  const isPlain = (kind: LayerKind): boolean => kindKey(kind) === kindKey(plainKind);
  return kinds.every(isPlain) ? undefined : kinds;
}

function parseAttentionKinds(
  config: JsonFields,
  layers: number,
  contextLength: number,
  traits: LayerTraits,
): readonly LayerKind[] {
  const rotated = traits.unrotatedLayers ? parseRotated(config, layers) : [];
  const sliding = parseSliding(config, layers, rotated, traits);
  const window = sliding.includes(true) ? parseWindow(config, contextLength, traits) : null;
  return Array.from({ length: layers }, (_, layer): LayerKind => {
    const slides = sliding[layer] === true;
    const rotation = slides && traits.ownRotation ? "localRope" : "rope";
    return {
      window: slides ? window : null,
      rotation: rotated[layer] === false ? null : rotation,
    };
  });
}

function parseHybrid(
  config: JsonFields,
  layers: number,
  { mixer, names, attentionNames, hasAttention, optionalRotation = false }: HybridTraits,
): readonly LayerKind[] {
  const field = config.get("layer_types") === undefined ? "layers_block_type" : "layer_types";
  const types = config.get(field);
  const known = [...names, ...attentionNames];
  const listed = types === undefined ? undefined : listOfTypes(config, field, types, known, layers);
  const type = "position_embedding_type";
  const position = optionalRotation ? config.string(type, "nope") : "rope";
  if (position !== "rope" && position !== "nope") {
    throw config.refuse(type, 'only "rope" and "nope" are supported');
  }
  return Array.from({ length: layers }, (_, layer): LayerKind => {
    const isAttention = listed
      ? attentionNames.includes(listed[layer] ?? "")
      : hasAttention(config, layer);
    if (!isAttention) return { mixer, window: null, rotation: null };
    return { window: null, rotation: position === "rope" ? "rope" : null };
  });
}

/** Whether each layer has a window, even one that no sequence exceeds. */
function parseSliding(
  config: JsonFields,
  layers: number,
  rotated: readonly boolean[],
  { windows, interval: defaultInterval = 6 }: LayerTraits,
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
      const interval = config.integer("sliding_window_pattern", 1, defaultInterval);
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
  const listed = listOfTypes(config, "layer_types", types, known, layers);
  return listed.map((type) => type === "sliding_attention");
}

function listOfTypes(
  config: JsonFields,
  field: string,
  types: unknown,
  known: readonly string[],
  layers: number,
): readonly string[] {
  if (!Array.isArray(types) || !types.every((type) => known.includes(type))) {
    throw config.refuse(field, `the supported kinds of layers are ${known.join(" and ")}`);
  }
  if (types.length !== layers) throw config.refuse(field, `there are ${layers} layers`);
  return types;
}

// Unlike an absent window, which means the default, null means none. A window that no sequence within the
// context exceeds has no effect.
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
