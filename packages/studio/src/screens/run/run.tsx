/** To come. */
export function RunScreen() {
  return <h1>RunScreen</h1>;
}
