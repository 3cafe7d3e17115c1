import type { BatchLoopOptions, DataOptions } from "@tinker-ts/cookbook/supervised";
import { dataSource } from "../parse/data-source.js";
import type { OptionValues } from "../parse/option-spec.js";
import { readRate, type rowOptions } from "../parse/training-options.js";

type RowSettings = Omit<BatchLoopOptions, "service" | "folder" | "ifExists"> &
  Pick<DataOptions, "evalData" | "testSize" | "renderer" | "batchSize" | "maxLength" | "badRows">;

/** The settings of training on rows of data, from the options of the command. */
export function rowSettings(chosen: OptionValues<typeof rowOptions>, cwd: string): RowSettings {
  return {
    model: chosen.model,
    evalData: chosen.eval === undefined ? undefined : dataSource(chosen.eval, cwd),
    testSize: chosen.testSize,
    renderer: chosen.renderer,
    learningRate: chosen.lr === undefined ? undefined : readRate(chosen.lr, { auto: true }),
    lrSchedule: chosen.lrSchedule,
    loraRank: chosen.rank,
    numEpochs: chosen.epochs,
    batchSize: chosen.batchSize,
    maxSteps: chosen.maxSteps,
    maxLength: chosen.maxLength,
    evalEvery: chosen.evalEvery,
    saveEvery: chosen.saveEvery,
    seed: chosen.seed,
    badRows: chosen.skipBadRows ? "skip" : "fail",
  };
}
