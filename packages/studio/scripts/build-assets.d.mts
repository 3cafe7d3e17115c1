/** True when the built page is that of these sources. */
export function areAssetsBuilt(): boolean;

/** Builds the page unless it is there already. */
export function buildAssets(): Promise<void>;
