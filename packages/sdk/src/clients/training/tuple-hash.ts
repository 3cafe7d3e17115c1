const prime1 = 11400714785074694791n;
const prime2 = 14029467366897019727n;
const prime5 = 2870177450012600261n;
const modulus = 2n ** 61n - 1n;

/** Python's hash of a tuple of integers, as a signed 64-bit number. */
export function tupleHash(values: readonly bigint[]): bigint {
  let accumulator = prime5;
  for (const value of values) {
    accumulator = unsigned(accumulator + laneOf(value) * prime2);
    accumulator = unsigned((accumulator << 31n) | (accumulator >> 33n));
    accumulator = unsigned(accumulator * prime1);
  }
  accumulator = unsigned(accumulator + (BigInt(values.length) ^ (prime5 ^ 3527539n)));
  if (accumulator === unsigned(-1n)) accumulator = 1546275796n;
  return BigInt.asIntN(64, accumulator);
}

/** Python's hash of one integer, as the 64 bits that go into the tuple's. */
function laneOf(value: bigint): bigint {
  const magnitude = (value < 0n ? -value : value) % modulus;
  const hash = value < 0n ? -magnitude : magnitude;
  return unsigned(hash === -1n ? -2n : hash);
}

function unsigned(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}
