import { report } from "./trebuchet.js"

/** Returns a function that loads a file beside this one, once. A call after a failed load tries again. */
function loader<T>(name: string, begin: () => Promise<T>): () => Promise<T> {
    let failures = 0
    let loading: Promise<T> | undefined
    // Many browsers remember a failed load until the page is reloaded, so every other attempt uses a different URL.
    return () =>
        (loading ??= (failures % 2 ? import(name + "?" + failures) : begin()).catch((error) => {
            // The failure is reported once; dependent code waits silently.
            if (!failures++) report(error)
            loading = undefined
            throw error
        }))
}

// Each import names its file literally, as bundlers require.
export const loadOffline = loader("./trebuchet-offline.js", () => import("./trebuchet-offline.js"))
export const loadRooms = loader("./trebuchet-rooms.js", () => import("./trebuchet-rooms.js"))
export const loadWrites = loader("./trebuchet-writes.js", () => import("./trebuchet-writes.js"))
