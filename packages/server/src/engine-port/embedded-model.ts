/** The id of the model that comes with the engine; it is always there, nothing has to be fetched. */
export const embeddedModelId = "tinker-ts/sprout";
