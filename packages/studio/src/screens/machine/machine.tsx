/** To come. */
export function Machine() {
  return <h1>Machine</h1>;
}
