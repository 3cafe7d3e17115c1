/** A named view. */
export interface StudioView {
  /** Its id. */
  readonly id: string;
  /** Its name. */
  readonly name: string;
  /** Path and query within the studio. */
  readonly query: string;
}

/** `GET views`; `POST views` takes name and query; `DELETE views/{id}`. */
export interface StudioViews {
  /** By name. */
  readonly views: readonly StudioView[];
}
