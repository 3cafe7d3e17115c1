/** Why a server refused something: its own words where it gave some, else the status. */
export async function refusalOf(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // Not JSON: the status has to do.
  }
  return `It answered ${response.status}.`;
}
