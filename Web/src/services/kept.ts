import type { KeptWrite, PendingStore } from "./types.js"

const tableName = "writes"

/** The answer of a request of IndexedDB. */
const answer = <T>(request: any): Promise<T> =>
    new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result)
        request.onerror = () => reject(request.error)
    })

/**
 * Keeps writes in IndexedDB, and holds a Web Lock for each secret that is this tab's: the system gives it back when the tab is gone,
 * however that came. Undefined where there are none.
 */
export function pendingStore(
    name: string,
    database: any = (globalThis as any).indexedDB,
    locks: any = (globalThis as any).navigator?.locks
): PendingStore | undefined {
    if (!database || !locks) return undefined
    let opened: Promise<any> | undefined
    const open = (): Promise<any> => {
        const request = database.open(name, 1)
        request.onupgradeneeded = () => request.result.createObjectStore(tableName, { keyPath: ["secret", "number"] })
        const forget = (): void => void (opened = undefined)
        const opening = answer<any>(request)
        // What failed, or was closed by the browser, is opened anew.
        opening.then((database) => (database.onclose = forget), forget)
        return opening
    }
    /** Resolves when what `change` has asked for is on the disk. */
    const write = async (change: (table: any) => void): Promise<void> => {
        const transaction = (await (opened ??= open())).transaction(tableName, "readwrite", { durability: "strict" })
        change(transaction.objectStore(tableName))
        return new Promise((resolve, reject) => {
            transaction.oncomplete = () => resolve()
            transaction.onabort = () => reject(transaction.error)
        })
    }
    const releases: (() => void)[] = []
    let isClosed = false
    return {
        add: (kept) => write((table) => table.put(kept)),
        remove: (keys) => write((table) => keys.forEach(({ secret, number }) => table.delete([secret, number]))),
        all: async () => answer<KeptWrite[]>((await (opened ??= open())).transaction(tableName).objectStore(tableName).getAll()),
        claim: (secret) =>
            new Promise((resolve, reject) => {
                const hold = (lock: unknown): unknown => {
                    resolve(!!lock && !isClosed)
                    if (isClosed) return
                    // Held until the promise ends, and by nobody when there is none.
                    return lock && new Promise<void>((release) => releases.push(release))
                }
                locks.request(name + secret, { ifAvailable: true }, hold).catch(reject)
            }),
        close() {
            isClosed = true
            for (const release of releases) release()
            opened?.then((database) => database.close()).catch(() => {})
        },
    }
}
