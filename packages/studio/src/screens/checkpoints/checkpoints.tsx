/** To come. */
export function Checkpoints() {
  return <h1>Checkpoints</h1>;
}
