import type { PendingStore } from "./types.js"

/**
 * Keeps writes in IndexedDB, and holds a Web Lock for each secret that is this tab's: the system gives it back when the tab is gone,
 * however that came. Undefined where there are none. What does so is trebuchet-offline.js, which is loaded when there is something to do.
 */
export function pendingStore(
    name: string,
    database: any = (globalThis as any).indexedDB,
    locks: any = (globalThis as any).navigator?.locks
): PendingStore | undefined {
    if (!database || !locks) return undefined
    let store: PendingStore | undefined
    const made: any = {}
    for (const method of ["add", "remove", "all", "claim", "close"] as const) {
        made[method] = async (...args: [any]) => {
            // Tried again where it could not be loaded.
            const { openStore } = await import("./trebuchet-offline.js")
            store ??= openStore(name, database, locks)
            return store[method](...args)
        }
    }
    return made
}
