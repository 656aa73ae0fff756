import { failure } from "./rejections.js"
import { report } from "./trebuchet.js"

declare const BUILD: string

/** The identifier of the sources of this file, set by `scripts/web`. */
export const build = BUILD

let isReported = false

/**
 * Throws if a file that was loaded later has different sources, as when the server is updated while the page is open. Such files depend on
 * the internals of the files loaded before. The mismatch is reported once, like an uncaught error.
 */
export function needSame(other: { readonly build: string }): void {
    if (other.build === build) return
    const problem = failure("unavailable", "the service files have two versions: reload the page")
    if (!isReported) report(problem)
    isReported = true
    throw problem
}
