/** A question and the answer that is wanted. */
export interface Exchange {
  readonly question: string;
  readonly answer: string;
}

/** Something to teach: what it is, data to learn from, and questions that are kept back for the exam. */
export interface Task {
  readonly title: string;
  readonly description: string;
  /** Draws questions to learn from; none of them is in the exam. */
  readonly lesson: (count: number) => Exchange[];
  readonly exam: readonly Exchange[];
}
