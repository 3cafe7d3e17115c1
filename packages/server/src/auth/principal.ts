/** An authenticated caller. */
export interface Principal {
  /** The owner of everything that the caller creates. */
  readonly owner: string;
  readonly email: string | null;
  /** Identifies the key that was used, without revealing it. */
  readonly keyId: string;
}
