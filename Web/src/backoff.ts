/**
 * Returns the delay in milliseconds after the given number of consecutive failures. The delay is random between zero and a limit that
 * doubles with each failure (full jitter). Clients of a restarted server therefore do not all reconnect at once.
 */
export function backoff(failures: number, initial: number, maximum: number, random: number): number {
    // More doublings make no difference to any sensible limit.
    return failures ? random * Math.min(initial * 2 ** Math.min(failures - 1, 30), maximum) : 0
}
