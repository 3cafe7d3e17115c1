/** Whether a server has set a flag that is no setting of this client: it offers what the flag is named after. */
export function hasFlag(
  config: { readonly unknownFields?: Readonly<Record<string, unknown>> },
  name: "sample_cancel_enabled" | "sample_join_sampling_session",
): boolean {
  return config.unknownFields?.[name] === true;
}
