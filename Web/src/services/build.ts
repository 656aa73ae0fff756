import { failure } from "./refusals.js"
import { report } from "./trebuchet.js"

declare const BUILD: string

/** Of which sources this file is; `scripts/web` says it. */
export const build = BUILD

let wasTold = false

/**
 * Files that are loaded later know the insides of those that were there before. Throws where the two are of different sources, as when the
 * server was brought up to date while the page was open, which is told once as an uncaught error is.
 */
export function needSame(other: { readonly build: string }): void {
    if (other.build === build) return
    const problem = failure("unavailable", "the files of the services are of two versions: reload the page")
    if (!wasTold) report(problem)
    wasTold = true
    throw problem
}
