/** A word of the world with its other forms and what is known about it, by name. */
export interface Entry {
  readonly text: string;
  readonly [form: string]: string;
}

/** Entries from lines of the form "text, form, form", with the forms in the given order. */
export function entries(forms: readonly string[], lines: string): readonly Entry[] {
  return lines
    .trim()
    .split("\n")
    .map((line) => {
      const [text = "", ...values] = line.split(",").map((value) => value.trim());
      if (values.length !== forms.length) throw new Error(`"${line}" needs ${forms.join(", ")}`);
      return { text, ...Object.fromEntries(forms.map((form, index) => [form, values[index]])) };
    });
}

/** The plain texts of entries. */
export function texts(list: readonly Entry[]): readonly string[] {
  return list.map(({ text }) => text);
}
