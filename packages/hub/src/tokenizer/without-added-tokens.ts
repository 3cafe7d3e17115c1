import { isObject, type JsonObject } from "../files/json.js";
import { tokenizerFields } from "./tokenizer-fields.js";

// Leaving tokens out of the added ones is not enough, because a model may find them itself:
//
// - Unigram takes any piece of its list, and special tokens stand there with the best of scores. An
//   emptied piece matches nothing and leaves the other ids where they are. (The reference
//   implementation does not do this: there `</s>` in a text still becomes the end token.)
// - BPE with `ignore_merges` takes a word of its vocabulary without looking at the merges.
//
// A token that ordinary text needs stays, even if it is declared special: a single character, or
// a result of merges.

/** The form of a checked `tokenizer.json` that takes the spelling of the chosen added tokens as text. */
export function withoutAddedTokens(
  json: JsonObject,
  isSplit: (addedToken: JsonObject) => boolean,
): JsonObject {
  const added = addedTokens(json);
  const split = new Set(
    added
      .filter(isSplit)
      .map(({ content }) => String(content))
      .filter(isLong),
  );
  return {
    ...json,
    added_tokens: added.filter((token) => !isSplit(token)),
    model: modelWithout(split, json["model"]),
    // It would not find the ids of the special tokens that it adds.
    post_processor: null,
  };
}

/** The added tokens of a `tokenizer.json`. */
export function addedTokens(json: JsonObject): JsonObject[] {
  return Array.isArray(json["added_tokens"]) ? json["added_tokens"].filter(isObject) : [];
}

function isLong(token: string): boolean {
  return Array.from(token).length > 1;
}

function modelWithout(split: ReadonlySet<string>, json: unknown): JsonObject {
  const model = tokenizerFields(json, '"model"');
  const vocab = model.get("vocab");
  if (Array.isArray(vocab)) {
    const emptied = vocab.map(([piece, score]: [string, number]) => [
      split.has(piece) ? "" : piece,
      score,
    ]);
    return { ...model.json, vocab: emptied };
  }
  if (!isObject(vocab) || !model.boolean("ignore_merges", false)) return model.json;
  const needed = new Set([...mergedTokens(model.get("merges")), model.string("unk_token", "")]);
  const kept = Object.entries(vocab).filter(([token]) => !split.has(token) || needed.has(token));
  return { ...model.json, vocab: Object.fromEntries(kept) };
}

/** The result of each merge; files write a pair as a list or, in older ones, with a space between. */
function* mergedTokens(merges: unknown): Generator<string> {
  for (const pair of Array.isArray(merges) ? merges : []) {
    yield Array.isArray(pair) ? pair.join("") : String(pair).replace(" ", "");
  }
}
