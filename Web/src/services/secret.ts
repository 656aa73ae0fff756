/** 24 random bytes as text: nobody guesses them. */
export const secret = (): string => crypto.getRandomValues(new Uint32Array(6)).join()
