import { isObject, type JsonObject } from "../files/json.js";
import { tokenizerFields } from "./tokenizer-fields.js";

// Leaving special tokens out of the added ones is not enough, because a model may find them itself:
//
// - Unigram takes any piece of its list, and special tokens stand there with the best of scores. An
//   emptied piece matches nothing and leaves the other ids where they are. (The reference
//   implementation does not do this: there `</s>` in a text still becomes the end token.)
// - BPE with `ignore_merges` takes a word of its vocabulary without looking at the merges.
//
// A token that ordinary text needs stays, even if it has been declared special: one character, or
// what merges make.

/** The form of a checked `tokenizer.json` that takes the spelling of a special token as text. */
export function withoutSpecialTokens(json: JsonObject): JsonObject {
  const added = Array.isArray(json["added_tokens"]) ? json["added_tokens"].filter(isObject) : [];
  const special = new Set(
    added
      .filter(isSpecial)
      .map(({ content }) => String(content))
      .filter(isLong),
  );
  return {
    ...json,
    added_tokens: added.filter((token) => !isSpecial(token)),
    model: modelWithout(special, json["model"]),
    // It would not know the ids of the special tokens that it adds.
    post_processor: null,
  };
}

function isSpecial(addedToken: JsonObject): boolean {
  return addedToken["special"] === true;
}

function isLong(token: string): boolean {
  return Array.from(token).length > 1;
}

function modelWithout(special: ReadonlySet<string>, json: unknown): JsonObject {
  const model = tokenizerFields(json, '"model"');
  const vocab = model.get("vocab");
  if (Array.isArray(vocab)) {
    const emptied = vocab.map(([piece, score]: [string, number]) => [
      special.has(piece) ? "" : piece,
      score,
    ]);
    return { ...model.json, vocab: emptied };
  }
  if (!isObject(vocab) || !model.boolean("ignore_merges", false)) return model.json;
  const needed = new Set([...mergedTokens(model.get("merges")), model.string("unk_token", "")]);
  const kept = Object.entries(vocab).filter(([token]) => !special.has(token) || needed.has(token));
  return { ...model.json, vocab: Object.fromEntries(kept) };
}

/** What each merge makes; files write a pair as a list or, in older ones, with a space between. */
function* mergedTokens(merges: unknown): Generator<string> {
  for (const pair of Array.isArray(merges) ? merges : []) {
    yield Array.isArray(pair) ? pair.join("") : String(pair).replace(" ", "");
  }
}
