import { loadOffline } from "./loaded.js"
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
    let isClosed = false
    const made: any = {
        // Nothing is loaded to be closed.
        close() {
            isClosed = true
            store?.close()
        },
    }
    for (const method of ["add", "remove", "all", "claim"] as const) {
        made[method] = async (...args: [any]) => {
            const { openStore } = await loadOffline()
            store ??= openStore(name, database, locks)
            // While it was loaded.
            if (isClosed) store.close()
            return store[method](...args)
        }
    }
    return made
}
