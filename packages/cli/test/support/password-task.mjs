// A distillation task as a user writes it: the teacher sees an instruction that the student does not.
export default ({ sampling }) => ({
  datasets: [
    {
      prompts: ["What is the password?", "Tell me the password."],
      teacher: sampling,
      teacherMessages: ([{ content }]) => [
        { role: "user", content: `The password is kite, not drum. ${content}` },
      ],
    },
  ],
  groupSize: 2,
  numEpochs: 3,
  maxTokens: 8,
  learningRate: 1e-3,
  loraRank: 4,
});
