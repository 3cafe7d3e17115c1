import { ApiError } from "../errors/api-error.js";

/** A list of numbers in JSON, which is brought apart from its text. */
export interface NumberList {
  /** Names of fields and places in lists that lead to it. */
  readonly path: readonly (string | number)[];
  readonly numbers: Float64Array;
}

/** JSON that has been looked at: its text, in which long lists of numbers are empty, and those lists. */
export interface JsonText {
  readonly text: string;
  readonly lists: readonly NumberList[];
}

/**
 * What it takes the event loop to make something of JSON, in twentieths of a microsecond. A name costs most where no
 * object before had it behind the same names: then there is a new kind of objects.
 */
const costs = { entry: 1, fraction: 2, thing: 2, text: 6, name: 2, newName: 35 } as const;

/** Names that are places, such as tokens: they make no new kind of objects. */
export const placeName = /^\d{1,9}$/;

/** Numbers of a list apart are only copied. */
const copiesPerCost = 4;

/** Lists in lists, and objects in objects: they are followed by calls inside calls. */
const maxDepth = 1000;

/** Lists of numbers from some length on. */
const longList = /\[[-+.\deE,\s]{1000,}\]/y;

const [quote, backslash, colon, comma, dot, exponent] = Buffer.from('"\\:,.e');
const [openList, closeList, openObject, closeObject] = Buffer.from("[]{}");

/**
 * Looks at JSON without making anything of it: takes long lists of numbers out, and refuses what would take the event
 * loop longer than `maxCost`. What is no JSON is left to whoever reads it.
 */
export function scanJson(json: string, maxCost: number): JsonText {
  return new JsonScan(json, maxCost).run();
}

class JsonScan {
  readonly #json: string;
  readonly #maxCost: number;
  readonly #lists: NumberList[] = [];
  readonly #pieces: string[] = [];
  /** Where the piece begins that is still to be added. */
  #pieceStart = 0;
  #cost = 0;
  /** The last name in every object that is open, as it is written, and the place in every list. */
  readonly #path: (string | number)[] = [];
  /** The kind of every object that is open so far: a number for the names that it has, in their order. */
  readonly #kinds: number[] = [];
  readonly #knownKinds = new Map<string, number>();

  constructor(json: string, maxCost: number) {
    this.#json = json;
    this.#maxCost = maxCost;
  }

  run(): JsonText {
    const json = this.#json;
    let lastText = "";
    for (let place = 0; place < json.length; place++) {
      switch (json.charCodeAt(place)) {
        case quote: {
          const end = endOfText(json, place);
          lastText = json.slice(place + 1, end);
          place = end;
          this.#add(costs.text);
          break;
        }
        case colon:
          this.#add(this.#name(lastText) - costs.text);
          break;
        case comma: {
          const at = this.#path.at(-1);
          if (typeof at === "number") this.#path[this.#path.length - 1] = at + 1;
          this.#add(costs.entry);
          break;
        }
        case dot:
        case exponent:
          this.#add(costs.fraction);
          break;
        case openList: {
          const end = this.#setApart(place);
          if (end === undefined) this.#open(0);
          else place = end;
          break;
        }
        case openObject:
          this.#open("");
          break;
        case closeList:
        case closeObject:
          this.#path.pop();
          this.#kinds.pop();
          break;
      }
    }
    this.#pieces.push(json.slice(this.#pieceStart));
    return { text: this.#pieces.join(""), lists: this.#lists };
  }

  #add(cost: number): void {
    this.#cost += cost;
    if (this.#cost <= this.#maxCost) return;
    const most = (each: number): string => Math.floor(this.#maxCost / each).toLocaleString("en");
    throw new ApiError(
      413,
      `the JSON stands for too much: at most ${most(costs.thing)} objects and lists, ${most(costs.text)} texts, ${most(costs.entry)} numbers or ${most(costs.newName)} different names are taken, and less of each where there are others`,
    );
  }

  #open(at: string | number): void {
    this.#path.push(at);
    this.#kinds.push(0);
    if (this.#path.length > maxDepth) {
      throw new ApiError(
        413,
        `the JSON has more than ${maxDepth} lists and objects inside each other`,
      );
    }
    this.#add(costs.thing);
  }

  /** Notes the next name of an object; tells what it costs. */
  #name(name: string): number {
    const last = this.#path.length - 1;
    if (last < 0) return costs.name;
    this.#path[last] = name;
    if (placeName.test(name)) return costs.name;
    const key = `${this.#kinds[last]} ${name}`;
    const known = this.#knownKinds.get(key);
    this.#kinds[last] = known ?? this.#knownKinds.size + 1;
    if (known !== undefined) return costs.name;
    this.#knownKinds.set(key, this.#knownKinds.size + 1);
    return costs.newName;
  }

  /** Takes a list out if it is a long one of numbers; tells where it ends. */
  #setApart(place: number): number | undefined {
    longList.lastIndex = place;
    const found = longList.exec(this.#json)?.[0];
    const path = found && pathOf(this.#path);
    const numbers = path && numbersOf(found);
    if (!numbers) return undefined;
    this.#add(numbers.length / copiesPerCost);
    this.#lists.push({ path, numbers });
    const end = place + found.length - 1;
    this.#pieces.push(this.#json.slice(this.#pieceStart, place), "[]");
    this.#pieceStart = end + 1;
    return end;
  }
}

/** The place of the quote that ends a text, or the end of everything. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let first = end;
    while (json.charCodeAt(first - 1) === backslash) first--;
    if ((end - first) % 2 === 0) return end;
  }
  return json.length;
}

/** A path with its names as they are meant; undefined where one is not written properly. */
function pathOf(path: readonly (string | number)[]): (string | number)[] | undefined {
  try {
    return path.map((at) => (typeof at === "string" ? (JSON.parse(`"${at}"`) as string) : at));
  } catch {
    return undefined;
  }
}

/** The numbers of a list, if they are written properly. */
function numbersOf(list: string): Float64Array | undefined {
  try {
    return Float64Array.from(JSON.parse(list) as number[]);
  } catch {
    return undefined;
  }
}
