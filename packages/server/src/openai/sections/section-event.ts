/** A part of an answer, in the order in which the model wrote it. */
export type SectionEvent =
  | { readonly kind: "reasoning"; readonly text: string }
  | { readonly kind: "content"; readonly text: string }
  /** A call begins. */
  | { readonly kind: "call"; readonly name: string }
  /** More of the arguments of the call that began last. */
  | { readonly kind: "arguments"; readonly text: string };
