export { holds, type Check, type Recipe, type RecipeContext, type RecipeResult } from "./recipe.js";
export { loadRecipe, recipes, type RecipeEntry } from "./registry.js";
export { runRecipe, type JudgedResult, type RunRecipeOptions } from "./run-recipe.js";
