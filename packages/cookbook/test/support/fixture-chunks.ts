import { ModelInput } from "tinker-ts";

/** A piece of an input as the cases write it. */
export type Chunk =
  | { readonly tokens: number[] }
  | { readonly image: number; readonly name: string };

/** Pictures are identified by name, so a picture's bytes are its name. */
export function toModelInput(chunks: readonly Chunk[]): ModelInput {
  return new ModelInput({
    chunks: chunks.map((chunk) =>
      "tokens" in chunk
        ? { type: "encoded_text", tokens: chunk.tokens }
        : {
            type: "image",
            data: new TextEncoder().encode(chunk.name),
            format: "png",
            expectedTokens: chunk.image,
          },
    ),
  });
}

/** The way back. */
export function plainChunks({ chunks }: ModelInput): Chunk[] {
  return chunks.map((chunk) => {
    if (chunk.type === "encoded_text") return { tokens: [...chunk.tokens] };
    if (chunk.type !== "image") throw new Error(`no case has a chunk of type ${chunk.type}`);
    return { image: chunk.expectedTokens!, name: new TextDecoder().decode(chunk.data) };
  });
}
