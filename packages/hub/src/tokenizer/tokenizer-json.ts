import type { JsonFields } from "../files/json-fields.js";
import type { JsonObject } from "../files/json.js";
import { tokenizerFields, unsupportedTokenizer } from "./tokenizer-fields.js";

// The library that encodes follows the reference implementation for the parts listed here and
// deviates for some settings. Settings that it reads differently are rewritten into ones that it
// reads right; parts that have not been compared with the reference are refused rather than
// trusted. Two differences are known to remain: between two segmentations of equal score a Unigram
// model may choose the other one, and an added token that swallows white space beside it (`lstrip`,
// `rstrip`) swallows U+FEFF too. Decoding does not go through the library.

const supportedTypes: Readonly<Record<string, readonly string[]>> = {
  model: ["BPE", "Unigram"],
  normalizer: ["NFC", "NFD", "NFKC", "NFKD", "Prepend", "Replace", "Sequence"],
  pre_tokenizer: ["ByteLevel", "Digits", "Metaspace", "Sequence", "Split"],
  post_processor: ["ByteLevel", "Sequence", "TemplateProcessing"],
};

/** Checks a parsed `tokenizer.json` and returns the form of it that the library reads exactly. */
export function prepareTokenizerJson(json: JsonObject): JsonObject {
  for (const [field, types] of Object.entries(supportedTypes)) {
    for (const part of partsOf(json[field] ?? null, field)) {
      const type = part.string("type", field === "model" ? "BPE" : undefined);
      if (types.includes(type)) continue;
      throw part.refuse("type", `the supported ones are ${types.join(", ")}`);
    }
  }
  checkModel(json["model"]);
  checkAddedTokens(json["added_tokens"]);
  return {
    added_tokens: [],
    decoder: null,
    normalizer: null,
    post_processor: null,
    ...json,
    // Padding and truncation belong to batching; some files contain them by accident.
    padding: null,
    truncation: null,
    pre_tokenizer: json["pre_tokenizer"] ? rewrite(json["pre_tokenizer"]) : null,
  };
}

/** A part and, where it is a sequence, the parts inside it. */
function partsOf(json: unknown, field: string): JsonFields[] {
  if (json === null) return [];
  const part = tokenizerFields(json, `"${field}"`);
  return [part, ...sequenceOf(part).flatMap((inner) => partsOf(inner, field))];
}

function sequenceOf(part: JsonFields): unknown[] {
  for (const name of ["pretokenizers", "normalizers", "processors"]) {
    const list = part.get(name);
    if (Array.isArray(list)) return list;
  }
  return [];
}

function checkModel(json: unknown): void {
  const model = tokenizerFields(json, '"model"');
  for (const name of ["continuing_subword_prefix", "end_of_word_suffix"]) {
    if (model.string(name, "") !== "") throw model.refuse(name, "word marks are not supported");
  }
  if (model.get("dropout") !== undefined && model.get("dropout") !== 0) {
    throw model.refuse("dropout", "an encoding must not depend on chance");
  }
}

function checkAddedTokens(json: unknown): void {
  if (!Array.isArray(json)) return;
  for (const entry of json) {
    const token = tokenizerFields(entry, "an added token");
    if (!token.boolean("single_word", false)) continue;
    throw unsupportedTokenizer(
      `tokenizer.json asks to match the added token "${token.string("content")}" as a single word ("single_word"), which is not supported.`,
    );
  }
}

function rewrite(json: unknown): JsonObject {
  const part = tokenizerFields(json, '"pre_tokenizer"');
  const same = part.json;
  switch (part.string("type")) {
    case "Sequence":
      return { ...same, pretokenizers: sequenceOf(part).map(rewrite) };
    case "Digits":
      return split(part.boolean("individual_digits", false) ? "\\p{N}" : "\\p{N}+");
    case "ByteLevel": {
      if (!part.boolean("use_regex", true)) return same;
      const bytes = { ...same, use_regex: false, add_prefix_space: false };
      const leadingSpace = part.boolean("add_prefix_space", true) ? [addLeadingSpace] : [];
      return sequence(...leadingSpace, split(byteLevelWords), bytes);
    }
    case "Metaspace": {
      if (!part.boolean("split", true)) return same;
      const sign = part.string("replacement", "▁");
      return sequence(same, split(`${sign}[^${sign}]*`));
    }
    default: {
      const behavior = part.string("behavior").toLowerCase();
      // Where both matches and gaps are kept, it makes no difference which is which.
      if (behavior === "isolated") return { ...same, invert: false };
      if (behavior === "removed") return same;
      throw part.refuse("behavior", "the supported ones are Isolated and Removed");
    }
  }
}

/** How a byte-level tokenizer cuts a text into words; the library's own copy takes `\s` differently. */
const byteLevelWords =
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/** A replacement that is a space itself only adds one in front. */
const addLeadingSpace: JsonObject = {
  type: "Metaspace",
  replacement: " ",
  prepend_scheme: "always",
  split: false,
};

function split(regex: string): JsonObject {
  return { type: "Split", pattern: { Regex: regex }, behavior: "Isolated", invert: false };
}

function sequence(...pretokenizers: JsonObject[]): JsonObject {
  return { type: "Sequence", pretokenizers };
}
