import { loadOffline } from "./lazy-module.js"
import type { PendingStore } from "./types.js"

/**
 * Returns a store that keeps writes in IndexedDB and holds a Web Lock for each secret of this tab. The browser releases the lock when the
 * tab ends, for any reason. Returns undefined if either API is unavailable. The implementation is trebuchet-offline.js, which is loaded on
 * first use.
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
        // Closing does not load the implementation.
        close() {
            isClosed = true
            store?.close()
        },
    }
    for (const method of ["add", "remove", "all", "claim"] as const) {
        made[method] = async (...args: [any]) => {
            const { openStore } = await loadOffline()
            store ??= openStore(name, database, locks)
            // The store was closed while the implementation was loading.
            if (isClosed) store.close()
            return store[method](...args)
        }
    }
    return made
}
