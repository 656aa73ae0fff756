/** Returns 24 random bytes as text, which cannot be guessed. */
export const secret = (): string => crypto.getRandomValues(new Uint32Array(6)).join()
