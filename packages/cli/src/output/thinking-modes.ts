/** What prompts have a model do, by how they leave off; null where it chooses itself. */
export const thinkingModes = {
  inside: "thinks before it answers",
  behind: "answers without thinking",
  none: null,
} as const;
