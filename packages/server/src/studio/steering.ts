import type { StudioControls, StudioSave, StudioSaved, StudioStop } from "tinker-ts/wire";
import { checkName, pathOf } from "../checkpoints/checkpoint-names.js";
import type { Core } from "../core.js";
import { badRequest, conflict, notFound } from "../errors/api-error.js";
import type { Model } from "../store/models-table.js";
import { controlsOf, type Studio } from "./studio.js";

/** The reason that polls return while a run is held. */
export const pausedReason = "paused in the studio";

/**
 * What a person can do to a run. No request is ever altered: a run can be held between two of them, weights
 * can be saved beside them, a loop can be asked, and a model can be ended.
 */
export class Steering {
  readonly #core: Core;
  readonly #studio: Studio;

  constructor(core: Core, studio: Studio) {
    this.#core = core;
    this.#studio = studio;
  }

  /** Begins nothing new of a run, also after a restart, until it is resumed. */
  async pause(owner: string, id: string): Promise<void> {
    const models = this.#openModels(owner, id);
    const { store, clock } = this.#core.context;
    const pausedAt = clock.now();
    await store.write(() => {
      for (const logId of [id, ...models.map(({ modelId }) => modelId)]) {
        store.logs.change(logId, { pausedAt });
      }
    });
    for (const { modelId } of models) this.#core.runs.get(modelId)?.hold(pausedReason);
    await this.#note(owner, id, "paused", "paused");
  }

  async resume(owner: string, id: string): Promise<void> {
    const models = this.#studio.rows.row(this.#studio.owned(owner, id)).models;
    const { store } = this.#core.context;
    await store.write(() => {
      for (const logId of [id, ...models]) store.logs.change(logId, { pausedAt: null });
    });
    for (const modelId of models) this.#core.runs.get(modelId)?.release();
    await this.#note(owner, id, "resumed", "resumed");
  }

  /** Asks the loop to stop and save, or ends its models at once. */
  async stop(owner: string, id: string, { how }: StudioStop): Promise<void> {
    const log = this.#studio.owned(owner, id);
    if (how === "save") {
      if (log.source !== "log") {
        throw conflict(
          "no logger of this run listens, so it cannot be asked to stop and save: save now, then stop without saving, or open a RunLog with `service` in the loop",
        );
      }
      await this.#setControls(owner, id, (controls) => ({ ...controls, stop: true }));
      await this.#note(owner, id, "stopped", "asked to stop after this step and save");
      return;
    }
    if (how !== "now") throw badRequest("how", 'must be "save" or "now"');
    const reason = `it was stopped in the studio by ${owner}`;
    for (const { modelId } of this.#openModels(owner, id)) {
      await this.#core.endings.endModel(modelId, reason);
    }
    await this.#note(owner, id, "stopped", "stopped at once");
  }

  /** Ends a session: its clients get the reason, and named checkpoints stay. */
  async closeSession(owner: string, sessionId: string): Promise<void> {
    const { store } = this.#core.context;
    if (store.sessions.get(sessionId)?.owner !== owner) throw notFound(`session ${sessionId}`);
    if (!this.#core.sessions.isOpen(sessionId)) throw conflict("this session is closed already");
    await this.#core.endings.closeSession(sessionId, `it was closed in the studio by ${owner}`);
    this.#audit(owner, "session.closed", null, null);
  }

  /** Saves weights between two requests of the run, outside the client's numbering. */
  async save(owner: string, id: string, save: StudioSave): Promise<StudioSaved> {
    const models = this.#openModels(owner, id);
    const model =
      save.model === undefined ? models[0] : models.find((one) => one.modelId === save.model);
    if (!model || (models.length > 1 && save.model === undefined)) {
      const names = models.map(({ modelId }) => modelId).join(", ");
      throw badRequest("model", `say which of its models to save: ${names}`);
    }
    const kind = save.kind ?? "training";
    if (kind !== "training" && kind !== "sampler") {
      throw badRequest("kind", 'must be "training" or "sampler"');
    }
    const { modelId } = model;
    const step = this.#core.context.recorder.stepsOf(modelId) ?? model.applied;
    const { store } = this.#core.context;
    const isFree = (name: string): boolean => !store.checkpoints.get(modelId, kind, name);
    const wanted = save.name ?? `studio-${String(step).padStart(6, "0")}`;
    const name = checkName(wanted);
    if (!isFree(name)) {
      throw conflict(
        `checkpoint ${pathOf({ runId: modelId, type: kind, name })} exists already; choose another name`,
      );
    }
    const path = await this.#core.runs.saveNow(modelId, { type: kind, name });
    this.#audit(owner, "checkpoint.created", modelId, path);
    return { path };
  }

  /** Asks the loop for values that it has agreed to read. */
  async setControls(
    owner: string,
    id: string,
    values: Readonly<Record<string, unknown>>,
  ): Promise<StudioControls> {
    if (this.#studio.owned(owner, id).source !== "log") {
      throw conflict("no logger of this run listens; open a RunLog with `service` in the loop");
    }
    for (const [key, value] of Object.entries(values)) {
      if (value !== null && !["string", "number", "boolean"].includes(typeof value)) {
        throw badRequest(`values.${key}`, "must be text, a number, true, false or null");
      }
    }
    return this.#setControls(owner, id, (controls) => {
      const merged = Object.entries({ ...controls.values, ...values });
      const kept = merged.filter(([, value]) => value !== null);
      return { ...controls, values: Object.fromEntries(kept) as StudioControls["values"] };
    });
  }

  async #setControls(
    owner: string,
    id: string,
    change: (controls: StudioControls) => StudioControls,
  ): Promise<StudioControls> {
    const { store, recorder } = this.#core.context;
    const controls = await store.write(() => {
      const before = controlsOf(this.#studio.owned(owner, id));
      const after = { ...change(before), version: before.version + 1 };
      store.logs.change(id, { controls: JSON.stringify(after) });
      return after;
    });
    recorder.hub.noteChange(owner, id);
    return controls;
  }

  #openModels(owner: string, id: string): Model[] {
    const { models } = this.#studio.rows.row(this.#studio.owned(owner, id));
    const { store } = this.#core.context;
    const open = models
      .flatMap((modelId) => store.models.get(modelId) ?? [])
      .filter(({ state }) => state === "creating" || state === "live");
    if (open.length === 0) throw conflict("this run has ended: none of its models is open");
    return open;
  }

  async #note(owner: string, id: string, kind: string, what: string): Promise<void> {
    await this.#core.context.recorder.addMark(owner, id, {
      kind,
      text: `${what} in the studio by ${owner}`,
      subject: null,
    });
    this.#audit(owner, `run.${kind}`, id, null);
  }

  #audit(owner: string, event: string, modelId: string | null, tinkerPath: string | null): void {
    const { store, clock } = this.#core.context;
    const entry = { at: clock.now(), owner, event, modelId, tinkerPath, purpose: "studio" };
    void store.write(() => store.audit.add(entry));
  }
}
