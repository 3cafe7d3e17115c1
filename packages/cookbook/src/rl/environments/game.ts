import { ArgumentError } from "tinker-ts";
import { asMessages, textOf, type Message } from "../../renderers/index.js";
import { untilAborted } from "../../evaluation/index.js";
import type { Environment, EnvironmentGroup, Numbers, StepContext } from "../types.js";
import { messageEnvironment, type MessageEnvironmentOptions } from "./message-environment.js";

/** A game of several players, one of whom is to move. */
export interface Game {
  /** How many play. */
  readonly players: number;
  /** Who is to move, counted from 0; undefined when the game is over. */
  readonly turn: number | undefined;
  /** The prompt of a player before its move: a text, or messages. */
  observe(player: number): string | readonly Message[];
  /** Makes a move; false when it is not allowed, which ends the game. */
  move(player: number, text: string): boolean | Promise<boolean>;
  /** What each player gets when the game is over, and what it is worth as it stands. */
  rewards(): readonly number[];
  /** Numbers about the game that is over, to average. */
  metrics?(): Numbers;
}

/** Plays a seat that is not trained: gets a player's messages and returns its move. */
export type Opponent = (
  messages: readonly Message[],
  context: StepContext & { readonly player: number },
) => string | Promise<string>;

/** How games are played. */
export interface GameGroupOptions extends MessageEnvironmentOptions {
  /** Begins a game. */
  readonly game: (index: number) => Game;
  /** Games in the group. @default 1 */
  readonly games?: number | undefined;
  /** Who plays the seats that are not trained, by seat and game. @default all are trained */
  readonly opponent?: ((seat: number, game: number) => Opponent | undefined) | undefined;
  /** What a move that is not allowed costs. @default -2 */
  readonly illegalReward?: number | undefined;
  /** Names for metrics. */
  readonly tags?: readonly string[] | undefined;
}

/**
 * Games between copies of the policy, or with opponents that are not trained: one episode per seat that is.
 *
 * - Players of a game wait for each other inside their turns, so all episodes of a group must run at once, as they do.
 * - A move that is not allowed or cannot be read ends the game: who made it pays, the others get what the game is worth.
 * - A failed episode of a player ends its game: the others get an error and the group is tried again.
 */
export function gameGroup(options: GameGroupOptions): EnvironmentGroup {
  const { games = 1, game, tags, opponent } = options;
  return {
    tags,
    environments: () =>
      Array.from({ length: games }, (_, index) => {
        const table = new Table(game(index), options, (seat) => opponent?.(seat, index));
        return table.seats();
      }).flat(),
  };
}

/** A game and its players: keeps the turn and wakes the waiting players. */
class Table {
  readonly #game: Game;
  readonly #options: GameGroupOptions;
  readonly #opponents: readonly (Opponent | undefined)[];
  readonly #received: Message[][];
  #waiting: (() => void)[] = [];
  #isOver = false;
  /** The seat with a move that was not allowed. */
  #guilty: number | undefined;
  #failure: { readonly cause: unknown } | undefined;

  constructor(
    game: Game,
    options: GameGroupOptions,
    opponentOf: (seat: number) => Opponent | undefined,
  ) {
    this.#game = game;
    this.#options = options;
    const seats = Array.from({ length: game.players }, (_, seat) => seat);
    this.#opponents = seats.map(opponentOf);
    this.#received = seats.map(() => []);
    if (this.#opponents.every((one) => one !== undefined)) {
      throw new ArgumentError("opponent", "leaves no seat for the policy that is trained");
    }
  }

  /** An episode per seat that is trained. */
  seats(): Environment[] {
    return this.#opponents.flatMap((one, seat) => (one ? [] : [this.#seat(seat)]));
  }

  #seat(seat: number): Environment {
    let isDone = false;
    const inner = messageEnvironment(
      {
        start: () => asMessages(this.#game.observe(seat)),
        reply: async (message, _response, context) => {
          await this.#move(seat, textOf(message));
          await this.#turnOf(seat, context);
          if (!this.#ended) return { reward: 0, messages: asMessages(this.#game.observe(seat)) };
          return this.#result(seat);
        },
      },
      this.#options,
    );
    return {
      start: async (context) => {
        await this.#turnOf(seat, context);
        if (!this.#ended) return inner.start(context);
        isDone = true;
        // The game was over before this seat had a move.
        return { ...this.#result(seat), overflow: true };
      },
      step: async (action, context) => {
        const result = await inner.step(action, context);
        if (result.next) return result;
        isDone = true;
        // An answer that could not be read is no move, and no other player makes it.
        if (!this.#ended) this.#end(seat);
        return result;
      },
      close: (failure) => {
        if (isDone) return;
        if (failure !== undefined) this.#failure ??= { cause: failure };
        this.#end();
      },
    };
  }

  get #ended(): boolean {
    return this.#isOver || this.#game.turn === undefined;
  }

  #result(seat: number): { reward: number; stopReason: string; metrics: Numbers } {
    const isGuilty = seat === this.#guilty;
    const { illegalReward = -2 } = this.#options;
    return {
      reward: isGuilty ? illegalReward : (this.#game.rewards()[seat] ?? 0),
      stopReason: this.#isOver ? (isGuilty ? "illegal_move" : "game_abandoned") : "completed",
      metrics: { ...this.#game.metrics?.(), illegal_move: Number(isGuilty) },
    };
  }

  async #move(seat: number, text: string): Promise<void> {
    if (this.#ended) return;
    const isLegal = await this.#game.move(seat, text);
    if (isLegal) this.#wake();
    else this.#end(seat);
  }

  /** Resolves when a seat is to move or the game is over; opponents move meanwhile. */
  async #turnOf(seat: number, context: StepContext): Promise<void> {
    for (;;) {
      if (this.#failure) {
        throw new Error("another player of the game failed", { cause: this.#failure.cause });
      }
      const { turn } = this.#game;
      if (this.#ended || turn === seat || turn === undefined) return;
      const woken = new Promise<void>((resolve) => this.#waiting.push(resolve));
      const opponent = this.#opponents[turn];
      if (opponent) this.#askOnce(turn, opponent, context);
      await untilAborted(context.signal, woken);
    }
  }

  #asked: number | undefined;

  /** Several seats may wait for the same opponent. */
  #askOnce(seat: number, opponent: Opponent, context: StepContext): void {
    if (this.#asked === seat) return;
    this.#asked = seat;
    const received = this.#received[seat]!;
    received.push(...asMessages(this.#game.observe(seat)));
    const asking = async (): Promise<void> => {
      const text = await opponent(received, { ...context, player: seat });
      received.push({ role: "assistant", content: text });
      this.#asked = undefined;
      await this.#move(seat, text);
    };
    asking().catch((cause: unknown) => {
      this.#failure ??= { cause };
      this.#wake();
    });
  }

  #end(guilty?: number): void {
    if (!this.#ended) this.#guilty = guilty;
    this.#isOver ||= this.#game.turn !== undefined;
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
