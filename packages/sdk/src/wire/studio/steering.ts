/** Values requested of a loop; it decides when to apply them, and logs it. */
export interface StudioControls {
  /** Grows with every change. */
  readonly version: number;
  /** Stop after this step and save. */
  readonly stop: boolean;
  /** Other values that the loop reads, such as a learning rate. */
  readonly values: Readonly<Record<string, string | number | boolean>>;
}

/** Body of `POST runs/{id}/controls`; null removes a value. */
export interface StudioSetControls {
  /** The values to request. */
  readonly values: Readonly<Record<string, string | number | boolean | null>>;
}

/** Body of `POST runs/{id}/stop`. */
export interface StudioStop {
  /** `save` asks the loop; `now` unloads the models, and the loop gets an error. */
  readonly how: "save" | "now";
}

/** Body of `POST runs/{id}/save`. */
export interface StudioSave {
  /**
   * The checkpoint's name.
   * @default studio-STEP
   */
  readonly name?: string;
  /**
   * The kind of checkpoint.
   * @default "training"
   */
  readonly kind?: "training" | "sampler";
  /** The model, if the run has several. */
  readonly model?: string;
}

/** Answer of `POST runs/{id}/save`, when it is done. */
export interface StudioSaved {
  /** Its path. */
  readonly path: string;
}

/** Body of `POST runs/{id}/label`; absent fields do not change. */
export interface StudioLabel {
  /** At most 200 characters. */
  readonly name?: string;
  /** Null for none. */
  readonly group?: string | null;
  /** All of them. */
  readonly tags?: readonly string[];
  /** Whether it is pinned. */
  readonly isPinned?: boolean;
  /** Whether it is archived. */
  readonly isArchived?: boolean;
}
