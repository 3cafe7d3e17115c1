import { isObject, type JsonObject } from "../files/json.js";
import { JsonFields, type MakeError } from "../files/json-fields.js";
import { refuseByName } from "./refused-models.js";
import { embeddingName, unembeddingName } from "./tensor-names.js";

/** Models of several parts, only the text model is loaded. */
const wrappers = [
  {
    className: "Qwen3_5ForConditionalGeneration",
    modelType: "qwen3_5",
    textType: "qwen3_5_text",
  },
  { className: "Mistral3ForConditionalGeneration", modelType: "mistral3", textType: "mistral" },
] as const;

/** Classes of text models by the `model_type` that a wrapper's `text_config` has. */
const innerClasses: Readonly<Record<string, string>> = {
  qwen3_5_text: "Qwen3_5ForCausalLM",
  ministral3: "Ministral3ForCausalLM",
  mistral: "MistralForCausalLM",
};

/** Fields beside `text_config` that apply to the text model unless it has its own. */
const sharedFields = ["bos_token_id", "eos_token_id", "quantization_config"];

const tying = "tie_word_embeddings";

/** The configuration of the text model: the file's own, or the part of a model of several parts. */
export function textConfigOf(config: JsonFields, makeError: MakeError): JsonFields {
  refuseByName(config);
  const text = config.get("text_config");
  if (text === undefined) return config;
  const wrapper = wrapperOf(config);
  if (!isObject(text)) throw config.refuse("text_config", "must be an object");
  const shared = sharedFields.flatMap((field) => {
    const value = text[field] ?? config.get(field);
    return value === undefined ? [] : [[field, value] as const];
  });
  const { model_type: type = wrapper.textType } = text;
  const inner = typeof type === "string" ? innerClasses[type] : undefined;
  const merged = {
    ...text,
    ...Object.fromEntries(shared),
    model_type: type,
    // As in transformers, where the whole model ties its parts.
    [tying]: config.get(tying) ?? text[tying],
    architectures: inner === undefined ? undefined : [inner],
  };
  return new JsonFields(merged, '"text_config" of config.json', makeError);
}

function wrapperOf(config: JsonFields): (typeof wrappers)[number] {
  const listed = config.get("architectures");
  const found = wrappers.find(({ className, modelType }) =>
    Array.isArray(listed) ? listed[0] === className : config.get("model_type") === modelType,
  );
  if (found !== undefined) return found;
  const supported = wrappers.map(({ className }) => className).join(", ");
  throw config.refuse("architectures", `of models with parts besides text, ${supported} load`);
}

/** Whether a configuration is ambiguous about tied embeddings: its two levels are not both set and equal. */
export function leavesTyingOpen({ text_config: text, ...whole }: JsonObject): boolean {
  return isObject(text) && (typeof text[tying] !== "boolean" || text[tying] !== whole[tying]);
}

/** Parts of a wrapped model's files that the text model does not use: vision, and the heads that predict several tokens. */
const otherParts =
  /^(model\.)?(visual|vision_tower|vision_model|multi_modal_projector)\.|^(model\.|language_model\.)?mtp\./;

/** Whether a stored tensor belongs to a part that is not loaded. */
export function isOtherPart(name: string): boolean {
  return otherParts.test(name);
}

/** The names of a text model's tensors in its files. */
interface Spelling {
  /** Replaces `model.`. */
  readonly prefix: string;
  readonly unembedding: string;
}

const spellings: readonly Spelling[] = [
  { prefix: "model.", unembedding: unembeddingName },
  { prefix: "model.language_model.", unembedding: unembeddingName },
  { prefix: "language_model.model.", unembedding: `language_model.${unembeddingName}` },
];

/** Detects the naming of some files by their embedding; returns the stored name of a text model's tensor. */
export function storedNames(names: { has(name: string): boolean }): (name: string) => string {
  const inSpelling = (name: string, { prefix, unembedding }: Spelling): string =>
    name === unembeddingName ? unembedding : name.replace(/^model\./, prefix);
  const found = spellings.find((spelling) => names.has(inSpelling(embeddingName, spelling)));
  return (name) => (found === undefined ? name : inSpelling(name, found));
}
