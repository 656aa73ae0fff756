import { isObject, type JSONCoder, unencodable, TrebuchetError } from "./trebuchet.js"

/**
 * The temporary errors after which the same call may be repeated: reasons of services, and codes of responses and of calls without a
 * response.
 */
const passing =
    /^(rateLimited|storeFailed|closed|otherAccount|timeout|internal|unavailable|cancelled|unknownOutcome|unauthenticated)$/

/** Returns the reason why a service has refused: the case name of its error. */
export const reasonOf = ({ code, data }: any): string | undefined => (code === "application" && isObject(data) ? Object.keys(data)[0] : undefined)

/** Resolves after the given time. The delay is limited because a timer beyond its maximum fires immediately. */
export const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 2e9)))

/**
 * Returns the delay in milliseconds after the given number of consecutive failures: from 100, doubling to 10,000, minus a random part of up
 * to half.
 */
export const delayAfter = (failures: number): number => Math.min(100 * 2 ** failures, 10_000) * (1 - Math.random() / 2)

/** Returns the delay in milliseconds before the same call is repeated; undefined if its outcome would be the same. */
export function pauseAfter(error: any, failures: number, isSignedIn: unknown = true): number | undefined {
    const reason = reasonOf(error)
    // A delay does not sign a user in.
    if (!passing.test(reason ?? error.code) || (error.code === "unauthenticated" && !isSignedIn)) return undefined
    return (reason && error.data[reason].retryAfterMilliseconds) ?? error.retryAfter ?? delayAfter(failures)
}

/** Throws if JSON cannot carry a value: `presence/x: NaN cannot be sent as JSON`. */
export function needJSON(what: string, value: unknown, json: JSONCoder): void {
    const flaw = unencodable(value, json !== JSON)
    if (flaw) throw failure("invalidArguments", what + flaw + " cannot be sent as JSON")
}

export const closed = (): TrebuchetError => failure("unavailable", "the services were closed")

export const failure = (code: string, message: string): TrebuchetError => new TrebuchetError(code, message)
