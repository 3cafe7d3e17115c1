import type { ChatMessage, Tokenizer } from "@tinker-ts/hub";

/** Renders a conversation for the model's next turn; without a template the texts are joined by lines. */
export async function chatPrompt(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
): Promise<number[]> {
  return (await promptOf(tokenizer, messages)).tokens;
}

/** The same with its text. */
export async function promptOf(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
): Promise<{ readonly text: string; readonly tokens: number[] }> {
  if (!hasTemplate(tokenizer)) {
    const text = messages.map(({ content }) => String(content)).join("\n");
    return { text, tokens: [...tokenizer.encode(text)] };
  }
  const text = await tokenizer.renderChat(messages, { addGenerationPrompt: true });
  return { text, tokens: [...tokenizer.encode(text, { addSpecialTokens: false })] };
}

/** Whether the model has a chat template. */
export function hasTemplate(tokenizer: Tokenizer): boolean {
  return tokenizer.chatTemplates.has("default");
}
