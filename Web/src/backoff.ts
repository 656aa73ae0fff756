/**
 * The wait after so many failures in a row, in milliseconds: drawn between nothing and a limit that doubles with each (full jitter), so
 * that the clients of a server that has come back do not all arrive at once.
 */
export function backoff(failures: number, initial: number, maximum: number, random: number): number {
    // More doublings make no difference to any sensible limit.
    return failures ? random * Math.min(initial * 2 ** Math.min(failures - 1, 30), maximum) : 0
}
