import type { SqlDatabase } from "./sql.js";

/** Small facts the server keeps about itself. */
export class SettingsTable {
  readonly #database: SqlDatabase;

  constructor(database: SqlDatabase) {
    this.#database = database;
  }

  /** The value of a setting; `make` decides it the first time. */
  getOrMake(name: string, make: () => string): string {
    const row = this.#database.sql("SELECT value FROM settings WHERE name = ?").first(name);
    if (row) return row["value"] as string;
    const value = make();
    this.#database.sql("INSERT INTO settings (name, value) VALUES (?, ?)").run(name, value);
    return value;
  }
}
