/** What is done, as far as the names in a configuration tell. */
export function kindOf(config: unknown): string {
  if (typeof config !== "object" || config === null) return "unknown";
  const has = (name: string): boolean => Object.hasOwn(config, name);
  if (has("dpo_beta") || has("preference_loss")) return "preference";
  if (has("loss_fn") || has("group_size") || has("groups_per_batch")) return "rl";
  return has("num_epochs") ? "supervised" : "unknown";
}
