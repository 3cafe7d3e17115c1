import type { Dice } from "./dice.js";
import type { Entry } from "./lexicon/entry.js";
import { slotEntries } from "./lexicon/slots.js";
import { parseTemplate, type Template } from "./template.js";

/**
 * A piece of the world while it is told.
 *
 * The first mention of a blank such as `{animal}` draws who or what it is; later mentions mean the same
 * one. `{animal2}` is another of its kind.
 */
export class Scene {
  readonly #dice: Dice;
  readonly #entries = new Map<string, Entry>();

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** One or more sentences, with capitals and articles put right. */
  say(source: string): string {
    return capitalize(this.phrase(source));
  }

  /** A part of a sentence. */
  phrase(source: string): string {
    const text = this.#expand(parseTemplate(source));
    return text.replaceAll(/\b(a) (?=[aeiou])/gi, "$1n ");
  }

  /** Who or what fills a blank. */
  entry(slot: string): Entry {
    const known = this.#entries.get(slot);
    if (known !== undefined) return known;
    const list = slotEntries(slot);
    const taken = new Set([...this.#entries.values()].map(({ text }) => text));
    const drawn = this.#dice.pick(list.filter(({ text }) => !taken.has(text)));
    this.#entries.set(slot, drawn);
    return drawn;
  }

  #expand(template: Template): string {
    let text = "";
    for (const node of template) {
      if (typeof node === "string") {
        text += node;
      } else if ("alternatives" in node) {
        text += this.#expand(this.#dice.pick(node.alternatives));
      } else {
        const word = this.entry(node.slot)[node.form];
        if (word === undefined) throw new Error(`{${node.slot}} has no form "${node.form}"`);
        text += node.capital ? capitalize(word) : word;
      }
    }
    return text;
  }
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
