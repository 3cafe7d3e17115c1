/** What a poller is told about a request that has not finished. */
export interface QueueNote {
  readonly queueState: "active" | "paused_capacity" | "paused_rate_limit";
  readonly reason: string;
}
