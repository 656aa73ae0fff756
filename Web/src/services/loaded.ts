import { report } from "./trebuchet.js"

/** What loads a file that stands beside this one, once; and tries it again when it is called again where that could not be had. */
function loader<T>(name: string, begin: () => Promise<T>): () => Promise<T> {
    let failures = 0
    let loading: Promise<T> | undefined
    // Many browsers remember that a file could not be had, until the page is reloaded: every other time it has another name.
    return () =>
        (loading ??= (failures % 2 ? import(name + "?" + failures) : begin()).catch((error) => {
            // Told once: what waits for the file waits without a word.
            if (!failures++) report(error)
            loading = undefined
            throw error
        }))
}

// Each names its file, as bundlers want it.
export const loadOffline = loader("./trebuchet-offline.js", () => import("./trebuchet-offline.js"))
export const loadRooms = loader("./trebuchet-rooms.js", () => import("./trebuchet-rooms.js"))
export const loadWrites = loader("./trebuchet-writes.js", () => import("./trebuchet-writes.js"))
