/** Which tokens of a conversation are trained. */
export const trainOnWhat = [
  "last_assistant_message",
  "last_assistant_turn",
  "all_assistant_messages",
  "all_messages",
  "all_tokens",
  "all_user_and_system_messages",
  "customized",
] as const;

/**
 * Which tokens of a conversation are trained; the end of a message belongs to it, headers are trained
 * with `all_tokens` only, a begin-of-text token never. `customized` reads `trainable` of each message.
 */
export type TrainOnWhat = (typeof trainOnWhat)[number];
