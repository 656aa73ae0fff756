import { isObject, type JSONCoder, misfit, TrebuchetError } from "./trebuchet.js"

/** Reasons for which a service refuses now what it may take later; and codes of answers, and of calls without one, behind which the same call may be made again. */
const passing =
    /^(rateLimited|storeFailed|closed|otherAccount|timeout|internal|unavailable|cancelled|unknownOutcome|unauthenticated)$/

/** Why a service has refused: the name of the case of its error. */
export const reasonOf = ({ code, data }: any): string | undefined => (code === "application" && isObject(data) ? Object.keys(data)[0] : undefined)

/** A timer that is set to more than it can hold fires at once. */
export const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 2e9)))

/** Milliseconds to wait after so many failures in a row: from 100, doubling to 10,000, less up to a half at random. */
export const delayAfter = (failures: number): number => Math.min(100 * 2 ** failures, 10_000) * (1 - Math.random() / 2)

/** Milliseconds to wait before the same call is made again; undefined when it would be answered the same. */
export function pauseAfter(error: any, failures: number, isSignedIn: unknown = true): number | undefined {
    const reason = reasonOf(error)
    // Nobody will be signed in by waiting.
    if (!passing.test(reason ?? error.code) || (error.code === "unauthenticated" && !isSignedIn)) return undefined
    return (reason && error.data[reason].retryAfterMilliseconds) ?? error.retryAfter ?? delayAfter(failures)
}

/** Throws where JSON cannot carry a value: `presence/x: NaN cannot be sent as JSON`. */
export function needJSON(what: string, value: unknown, json: JSONCoder): void {
    const flaw = misfit(value, json !== JSON)
    if (flaw) throw failure("invalidArguments", what + flaw + " cannot be sent as JSON")
}

export const closed = (): TrebuchetError => failure("unavailable", "the services were closed")

export const failure = (code: string, message: string): TrebuchetError => new TrebuchetError(code, message)
