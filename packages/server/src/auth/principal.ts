/** Who is asking. */
export interface Principal {
  /** Everything a caller makes belongs to this name. */
  readonly owner: string;
  readonly email: string | null;
  /** Names the key that was used, without telling it. */
  readonly keyId: string;
}
