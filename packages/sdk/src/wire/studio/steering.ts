/** What a loop is asked for; it decides when to follow and logs what it did. */
export interface StudioControls {
  /** Grows with every change. */
  readonly version: number;
  /** Stop after this step and save. */
  readonly stop: boolean;
  /** Whatever the loop has agreed to read, such as a learning rate. */
  readonly values: Readonly<Record<string, string | number | boolean>>;
}

/** Body of `POST runs/{id}/controls`; null takes a value back. */
export interface StudioSetControls {
  /** What to ask for. */
  readonly values: Readonly<Record<string, string | number | boolean | null>>;
}

/** Body of `POST runs/{id}/stop`. */
export interface StudioStop {
  /** `save` asks the loop; `now` unloads the models, and the loop gets an error that says so. */
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
   * What is saved.
   * @default "training"
   */
  readonly kind?: "training" | "sampler";
  /** The model, where the run has several. */
  readonly model?: string;
}

/** Answer of `POST runs/{id}/save`, when it is done. */
export interface StudioSaved {
  /** Where it is. */
  readonly path: string;
}

/** Body of `POST runs/{id}/label`; what is absent stays. */
export interface StudioLabel {
  /** At most 200 characters. */
  readonly name?: string;
  /** Null for none. */
  readonly group?: string | null;
  /** All of them. */
  readonly tags?: readonly string[];
  /** On top, and kept. */
  readonly isPinned?: boolean;
  /** Put away, or not. */
  readonly isArchived?: boolean;
}
