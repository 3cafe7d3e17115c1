/**
 * A text with choices and blanks: `[a|b]` is one of its alternatives (they may nest and may be empty),
 * `{animal}` a blank, `{animal.home}` another form of what fills it, `{Animal}` the same with a capital.
 */
export type TemplateNode =
  | string
  | { readonly alternatives: readonly Template[] }
  | { readonly slot: string; readonly form: string; readonly capital: boolean };

/** The parts of a text with choices and blanks, in order. */
export type Template = readonly TemplateNode[];

const cache = new Map<string, Template>();

/** Parses a template; the result is remembered. */
export function parseTemplate(source: string): Template {
  let template = cache.get(source);
  if (template === undefined) {
    const cursor = { source, at: 0 };
    template = parseSequence(cursor);
    if (cursor.at < source.length) throw new Error(`"${source}" closes what it has not opened`);
    cache.set(source, template);
  }
  return template;
}

interface Cursor {
  readonly source: string;
  at: number;
}

/** Reads up to the end of the text or of the alternative. */
function parseSequence(cursor: Cursor): Template {
  const nodes: TemplateNode[] = [];
  for (;;) {
    const character = cursor.source[cursor.at];
    if (character === undefined || character === "|" || character === "]") return nodes;
    if (character === "[") nodes.push(parseChoice(cursor));
    else if (character === "{") nodes.push(parseSlot(cursor));
    else nodes.push(parseText(cursor));
  }
}

function parseChoice(cursor: Cursor): TemplateNode {
  const alternatives: Template[] = [];
  do {
    cursor.at += 1;
    alternatives.push(parseSequence(cursor));
  } while (cursor.source[cursor.at] === "|");
  if (cursor.source[cursor.at] !== "]") throw new Error(`"${cursor.source}" lacks a "]"`);
  cursor.at += 1;
  return { alternatives };
}

function parseSlot(cursor: Cursor): TemplateNode {
  const end = cursor.source.indexOf("}", cursor.at);
  const inner = cursor.source.slice(cursor.at + 1, end);
  const [, first = "", rest = "", form = "text"] = /^(\w)(\w*)(?:\.(\w+))?$/.exec(inner) ?? [];
  if (end < 0 || first === "") throw new Error(`"${cursor.source}" has a malformed blank`);
  cursor.at = end + 1;
  const small = first.toLowerCase();
  return { slot: small + rest, form, capital: first !== small };
}

function parseText(cursor: Cursor): string {
  const [text = ""] = /^[^[{|\]]+/.exec(cursor.source.slice(cursor.at)) ?? [];
  cursor.at += text.length;
  return text;
}
